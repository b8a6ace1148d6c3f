#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
test_description='a rank is hit by "inject hang": it is named, its node isolated, the job ends as if nothing had happened'
. "$FR_T/lib.sh"

KIND=hang FOUND=hang
. "$FR_T/fault.sh"
