/* SPDX-License-Identifier: Apache-2.0 */
/* Empty: without TIOCGWINSZ, popt does not ask how wide the terminal is. */
