# SPDX-License-Identifier: LGPL-2.1-or-later
"""In the place of Debian's bcrypt, which Python loads once in a process, and the manager has an interpreter for each module:
with the real one no module loads. What needs it, the dashboard's passwords, is not packaged."""
