/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arguments.h - the kinds of argument in calls.def, as C and as Fortran write them
 *
 * A call's arguments are a list of (KIND, name). FR_LIST applies one macro to each:
 * FR_C_DECL gives the C parameter, FR_C_NAME the C argument, FR_F_DECL and FR_F_NAME the Fortran
 * ones (all by reference), FR_F_CONV the C values of Fortran arguments that the table's
 * expressions may use. What no expression uses is not converted.
 */
#ifndef FR_PROBE_MPI_ARGUMENTS_H
#define FR_PROBE_MPI_ARGUMENTS_H

#define FR_A1(m, x)       m x
#define FR_A2(m, x, ...)  m x, FR_A1(m, __VA_ARGS__)
#define FR_A3(m, x, ...)  m x, FR_A2(m, __VA_ARGS__)
#define FR_A4(m, x, ...)  m x, FR_A3(m, __VA_ARGS__)
#define FR_A5(m, x, ...)  m x, FR_A4(m, __VA_ARGS__)
#define FR_A6(m, x, ...)  m x, FR_A5(m, __VA_ARGS__)
#define FR_A7(m, x, ...)  m x, FR_A6(m, __VA_ARGS__)
#define FR_A8(m, x, ...)  m x, FR_A7(m, __VA_ARGS__)
#define FR_A9(m, x, ...)  m x, FR_A8(m, __VA_ARGS__)
#define FR_A10(m, x, ...) m x, FR_A9(m, __VA_ARGS__)
#define FR_S1(m, x)       m x
#define FR_S2(m, x, ...)  m x FR_S1(m, __VA_ARGS__)
#define FR_S3(m, x, ...)  m x FR_S2(m, __VA_ARGS__)
#define FR_S4(m, x, ...)  m x FR_S3(m, __VA_ARGS__)
#define FR_S5(m, x, ...)  m x FR_S4(m, __VA_ARGS__)
#define FR_S6(m, x, ...)  m x FR_S5(m, __VA_ARGS__)
#define FR_S7(m, x, ...)  m x FR_S6(m, __VA_ARGS__)
#define FR_S8(m, x, ...)  m x FR_S7(m, __VA_ARGS__)
#define FR_S9(m, x, ...)  m x FR_S8(m, __VA_ARGS__)
#define FR_S10(m, x, ...) m x FR_S9(m, __VA_ARGS__)

#define FR_PICK(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, name, ...) name
/* m applied to each, with commas; and without. */
#define FR_LIST(m, ...)                                                                            \
    FR_PICK(__VA_ARGS__, FR_A10, FR_A9, FR_A8, FR_A7, FR_A6, FR_A5, FR_A4, FR_A3, FR_A2, FR_A1, )  \
    (m, __VA_ARGS__)
#define FR_EACH(m, ...)                                                                            \
    FR_PICK(__VA_ARGS__, FR_S10, FR_S9, FR_S8, FR_S7, FR_S6, FR_S5, FR_S4, FR_S3, FR_S2, FR_S1, )  \
    (m, __VA_ARGS__)

#define FR_C_DECL(kind, x) FR_C_##kind(x)
#define FR_C_NAME(kind, x) x
#define FR_F_DECL(kind, x) FR_F_##kind(x)
#define FR_F_NAME(kind, x) x##_f
#define FR_F_CONV(kind, x) FR_V_##kind(x)

#define FR_C_CBUF(x)    const void *x
#define FR_C_BUF(x)     void *x
#define FR_C_INT(x)     int x
#define FR_C_INTS(x)    const int x[]
#define FR_C_AINTS(x)   const MPI_Aint x[]
#define FR_C_TYPE(x)    MPI_Datatype x
#define FR_C_TYPES(x)   const MPI_Datatype x[]
#define FR_C_OPER(x)    MPI_Op x
#define FR_C_COMM(x)    MPI_Comm x
#define FR_C_NEWCOMM(x) MPI_Comm *x
#define FR_C_INFO(x)    MPI_Info x
#define FR_C_GROUP(x)   MPI_Group x
#define FR_C_REQ(x)     MPI_Request *x
#define FR_C_STATUS(x)  MPI_Status *x

#define FR_F_CBUF(x)    void *x##_f
#define FR_F_BUF(x)     void *x##_f
#define FR_F_INT(x)     MPI_Fint *x##_f
#define FR_F_INTS(x)    MPI_Fint *x##_f
#define FR_F_AINTS(x)   MPI_Aint *x##_f
#define FR_F_TYPE(x)    MPI_Fint *x##_f
#define FR_F_TYPES(x)   MPI_Fint *x##_f
#define FR_F_OPER(x)    MPI_Fint *x##_f
#define FR_F_COMM(x)    MPI_Fint *x##_f
#define FR_F_NEWCOMM(x) MPI_Fint *x##_f
#define FR_F_INFO(x)    MPI_Fint *x##_f
#define FR_F_GROUP(x)   MPI_Fint *x##_f
#define FR_F_REQ(x)     MPI_Fint *x##_f
#define FR_F_STATUS(x)  MPI_Fint *x##_f

#define FR_V_CBUF(x)
#define FR_V_BUF(x)
#define FR_V_INT(x)  int x __attribute__((unused)) = *x##_f;
#define FR_V_INTS(x) const int *x __attribute__((unused)) = x##_f;
#define FR_V_AINTS(x)
#define FR_V_TYPE(x)  MPI_Datatype x __attribute__((unused)) = fr_pmpi.Type_f2c(*x##_f);
#define FR_V_TYPES(x) const MPI_Datatype *x __attribute__((unused)) = NULL;
#define FR_V_OPER(x)
#define FR_V_COMM(x) MPI_Comm x = fr_pmpi.Comm_f2c(*x##_f);
#define FR_V_NEWCOMM(x)
#define FR_V_INFO(x)
#define FR_V_GROUP(x)
#define FR_V_REQ(x)
#define FR_V_STATUS(x)

#endif /* FR_PROBE_MPI_ARGUMENTS_H */
