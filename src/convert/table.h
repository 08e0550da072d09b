/* SPDX-License-Identifier: MIT */
/* table.h: rows of a longer table, made by the library's encodings of the rows of the old one. */
#ifndef PE_CONVERT_TABLE_H
#define PE_CONVERT_TABLE_H

#include "convert/extend.h"

/* Writes the new table's rows behind the prefix, in the type of the old. */
posenc_status pe_table_rows_put(const pe_extend *x, pe_writer *w, posenc_error *err);
/* Asks the encoding whether it makes such rows; its sentence where not. */
posenc_status pe_table_rows_check(const pe_extend *x, posenc_error *err);

#endif
