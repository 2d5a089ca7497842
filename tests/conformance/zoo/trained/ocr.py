"""Reading: PP-OCR finds lines of rendered text in a picture of any size, turns them upright and reads them."""

from __future__ import annotations

import numpy as np
import onnx
from tests.conformance.packages import File
from tests.conformance.zoo.trained.case import Paired, Trained, require

_MODELS = {
    "PP-OCRv6_det_small": "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f",
    "PP-OCRv6_rec_small": "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884",
    "ch_ppocr_mobile_v2.0_cls_mobile": "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
}
LINES = ("Call me Ishmael.", "Some years ago, never mind how long", "precisely: 1851")


def _path(name: str):
    return File("rapidocr==3.10.0", f"rapidocr/models/{name}.onnx", _MODELS[name]).path()


def _page(width: int = 640, height: int = 224) -> np.ndarray:
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    for number, line in enumerate(LINES):
        draw.text((24, 20 + 64 * number), line, fill="black", font=ImageFont.load_default(30))
    return np.asarray(image)


def _prepare(pixels: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray((pixels.astype(np.float32) / 127.5 - 1).transpose(2, 0, 1)[None])


def _line_of(pixels: np.ndarray) -> np.ndarray:
    """A line with a height of 48 and whatever width it then has."""
    from PIL import Image

    width = max(48, round(pixels.shape[1] * 48 / pixels.shape[0]))
    return np.asarray(Image.fromarray(pixels).resize((width, 48), Image.Resampling.BILINEAR))


def _find_lines(detect: Paired, page: np.ndarray) -> list[np.ndarray]:
    """Pictures of the lines, from top to bottom. The network marks their core, which is grown again."""
    from skimage.measure import label, regionprops

    mask = detect(_prepare(page))[0][0, 0] > 0.3
    boxes = [region.bbox for region in regionprops(label(mask)) if region.area > 100]
    lines = []
    for top, left, bottom, right in sorted(boxes):
        grow = round(0.4 * (bottom - top))
        lines.append(page[max(0, top - grow) : bottom + grow, max(0, left - grow) : right + grow])
    return lines


def _read(recognise: Paired, characters: list[str], line: np.ndarray) -> str:
    """The likeliest character of each step, without repetitions and blanks."""
    best = recognise(_prepare(_line_of(line)))[0][0].argmax(1)
    kept = best[np.r_[True, best[1:] != best[:-1]] & (best > 0)]
    return "".join(characters[index - 1] for index in kept)


def _find_and_read() -> str:
    detect, recognise = Paired(_path("PP-OCRv6_det_small"), 1e-3), Paired(_path("PP-OCRv6_rec_small"), 1e-3)
    properties = {entry.key: entry.value for entry in onnx.load(_path("PP-OCRv6_rec_small")).metadata_props}
    characters = [*properties["character"].split("\n"), " "]
    for size in ((640, 224), (704, 256)):
        lines = _find_lines(detect, _page(*size))
        read = tuple(_read(recognise, characters, line) for line in lines)
        require(read == LINES, f"on {size[0]}x{size[1]} pixels it reads {' / '.join(read)}")
    return " / ".join(read)


def _turn() -> str:
    """Lines that stand on their heads are found."""
    page = _page()
    lines = [page[64 * number : 64 * number + 64, 8:400] for number in range(len(LINES))]
    inputs = []
    for line in lines:
        picture = _line_of(line)[:, :192]
        inputs += [_prepare(picture), _prepare(picture[::-1, ::-1])]
    classify = Paired(_path("ch_ppocr_mobile_v2.0_cls_mobile"), fixed=inputs[:1])
    scores = [classify(given)[0][0] for given in inputs]
    turned = [int(score.argmax()) for score in scores]
    require(turned == [0, 1] * len(lines), f"{turned} for lines that are upright and upside down in turn")
    return f"upright and upside down told apart, at least {min(score.max() for score in scores):.2f}"


CASES = (Trained("trained/pp-ocr", _find_and_read), Trained("trained/pp-ocr-direction", _turn))
