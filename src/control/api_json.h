/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_json.h - the objects of doc/api.md as JSON
 *
 * Each writes one value under key (NULL: an array element or the top); unknown is null or left out.
 *
 * Threads: the loop thread.
 */
#ifndef FR_CONTROL_API_JSON_H
#define FR_CONTROL_API_JSON_H

#include "base/jsonw.h"
#include "control/state.h"

/* Begin the top object with its schema; close it with fr_jsonw_end_obj. */
void fr_json_top(struct fr_jsonw *w, struct fr_buf *out, const char *schema);

/* members only: the caller opens and closes the object */
void fr_json_job_members(struct fr_ctl *c, struct fr_jsonw *w, const struct fr_cjob *j);
void fr_json_node_members(struct fr_ctl *c, struct fr_jsonw *w, const struct fr_cnode *n);
void fr_json_incident_members(struct fr_ctl *c, struct fr_jsonw *w, const struct fr_cincident *i);
void fr_json_decision_members(struct fr_ctl *c, struct fr_jsonw *w, const struct fr_cdecision *d);
void fr_json_goodput_members(struct fr_jsonw *w, const struct fr_cjob *j);
void fr_json_step_members(struct fr_jsonw *w, const struct fr_cjob *j, size_t i);
void fr_json_status_members(struct fr_ctl *c, struct fr_jsonw *w);

void fr_json_attempt(struct fr_jsonw *w, const struct fr_cattempt *a);
void fr_json_groups(struct fr_jsonw *w, const char *key, const struct fr_cjob *j);
void fr_json_rank(struct fr_ctl *c, struct fr_jsonw *w, const struct fr_cjob *j, uint32_t rank);
void fr_json_node_history(struct fr_jsonw *w, const struct fr_cnode *n);
void fr_json_decision(struct fr_ctl *c, struct fr_jsonw *w, const char *key,
                      const struct fr_cdecision *d);
void fr_json_actions(struct fr_jsonw *w, const struct fr_cdecision *d);

/* whole documents, also for evidence bundles */
/* bundle: the folder and the names of its files; left out when there is none */
void fr_json_bundle(struct fr_ctl *c, struct fr_jsonw *w, const struct fr_cincident *i);
void fr_json_incident_doc(struct fr_ctl *c, const struct fr_cincident *i, struct fr_buf *out);
void fr_json_ranks_doc(struct fr_ctl *c, const struct fr_cjob *j, struct fr_buf *out);

#endif /* FR_CONTROL_API_JSON_H */
