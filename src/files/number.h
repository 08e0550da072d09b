/* SPDX-License-Identifier: MIT */
/* number.h: reals as text. */
#ifndef PE_FILES_NUMBER_H
#define PE_FILES_NUMBER_H

enum { PE_REAL_TEXT = 40 };

/* x with the fewest of 15 to 17 digits that read back as x. */
void pe_real_text(char text[PE_REAL_TEXT], double x);

#endif
