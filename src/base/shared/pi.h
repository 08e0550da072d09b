/* SPDX-License-Identifier: MIT */
/*
 * pi.h: pi, which ISO C's math.h does not have
 */
#ifndef PE_BASE_SHARED_PI_H
#define PE_BASE_SHARED_PI_H

#define PE_PI     3.14159265358979323846
#define PE_TWO_PI 6.28318530717958647693 /* a whole turn, in radians */

#endif
