/* SPDX-License-Identifier: MIT */
double area_of_circle(double radius);

double area_of_circle(double radius)
{
    double sum = 0, step = radius / 1000; /* rings */
    for (int i = 0; i < 1000; i++) sum += 2 * 3.141592653589793 * (i + 0.5) * step * step;
    return sum;
}
