/* SPDX-License-Identifier: MIT */
/* model_parts.h: what model.c, which decides the order, and model_table.c, which knows the tensors, share */
#ifndef PE_TRAIN_MODEL_PARTS_H
#define PE_TRAIN_MODEL_PARTS_H

#include "train/model/model.h"

posenc_status pe_model_no_memory(posenc_error *err);

/* Sizes of the two plans. */
posenc_dims pe_short_dims(const pe_model *m);
posenc_dims pe_long_dims(const pe_model *m);

/* Finds out how rows enter, if there are any; after the plans. */
posenc_status pe_model_entry_prepare(pe_model *m, posenc_error *err);
/* The table `weights`, and the encoding's tensors without data; after pe_model_entry_prepare. */
posenc_status pe_model_table_create(pe_model *m, posenc_error *err);
/* Points the encoding's tensors into theta and grad, once there is memory. */
void pe_model_connect(pe_model *m);
/* The numbers before the first step. */
posenc_status pe_model_start(pe_model *m, posenc_error *err);

#endif
