"""How DisTrans deals classes out to clients, without the loop."""

from fednb.standalone.class_shares import class_shares

__all__ = ["class_shares"]
