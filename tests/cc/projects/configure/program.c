/* SPDX-License-Identifier: MIT */
void greet(long number);

int main(void)
{
    greet(1000);
    return 0;
}
