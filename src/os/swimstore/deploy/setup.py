# SPDX-License-Identifier: LGPL-2.1-or-later
"""For pybuild, and for hosts without pip: all that there is to say is in pyproject.toml.

python3 setup.py install --root / --prefix /usr --install-layout deb
"""

import setuptools

setuptools.setup()
