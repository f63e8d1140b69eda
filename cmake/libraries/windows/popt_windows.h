/* SPDX-License-Identifier: Apache-2.0 */
/* What popt asks POSIX for and Windows lacks: included before all else of it. Programs of Windows
 * have the rights of the user who starts them. */
#define getuid() 0
#define geteuid() 0
#define getgid() 0
#define getegid() 0
