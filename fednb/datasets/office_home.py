"""Office-Home: 65 kinds of objects in art, as clip art, in shops and in photographs."""

from fednb.datasets._domains import Domains
from fednb.datasets._listed import lacking

NEEDS = (
    "Office-Home (Venkateswara et al. 2017). Layout: office_home/<domain>/<class>/<file>, domains Art, Clipart, "
    "Product, Real World (2427, 4365, 4439, 4357 images), 65 classes Alarm_Clock to Webcam; the archive's folder "
    "OfficeHomeDataset_10072016/, renamed, is office_home/. From www.hemanthdv.org/officeHomeDataset.html; 1.1 GB. "
    "Licence: for research that is not commercial, under fair use."
)
DOMAINS = {"art": "Art", "clipart": "Clipart", "product": "Product", "real": "Real World"}  # of each site, its folder
CLASSES = tuple(
    """
    Alarm_Clock Backpack Batteries Bed Bike Bottle Bucket Calculator Calendar Candles Chair Clipboards Computer
    Couch Curtains Desk_Lamp Drill Eraser Exit_Sign Fan File_Cabinet Flipflops Flowers Folder Fork Glasses Hammer
    Helmet Kettle Keyboard Knives Lamp_Shade Laptop Marker Monitor Mop Mouse Mug Notebook Oven Pan Paper_Clip Pen
    Pencil Postit_Notes Printer Push_Pin Radio Refrigerator Ruler Scissors Screwdriver Shelf Sink Sneakers Soda
    Speaker Spoon TV Table Telephone ToothBrush Toys Trash_Can Webcam
    """.split()
)
NOTE = "Office-Home has no lists: test, validation and training images are drawn by fednb."
DATA = Domains("office_home", DOMAINS, CLASSES, NOTE)
load, missing = DATA.load, lacking(DATA.rows)
