"""Imported first in the fork server: thousands of modules are imported faster when nobody looks for garbage.

Workers, which do make garbage, switch it on again.
"""

import gc

gc.disable()
