"""torch's pooling and resizing, of every rank and element type: the reference is eager torch."""

from __future__ import annotations

from tests.fuzz.ops.base import functional
from tests.fuzz.ops.eager import row
from tests.fuzz.shadow import FLOATS

_POOLED = (*FLOATS, "u8", "i32", "i64", "i8", "u8")


def _image(b, dtypes, dims, smallest=1):
    """Few pixels, so that many windows are cut off or not of one size."""
    dtype = b.choose(dtypes)
    lead = (b.integer(1, 2), b.integer(1, 3)) if b.boolean() else (b.integer(1, 3),)
    return b.operand(dtype, (*lead, *(b.integer(smallest, 9 if dims < 3 else 6) for _ in range(dims))))


def _adaptive(dims, dtypes):
    def build(b):
        size = tuple(b.integer(1, 7 if dims < 3 else 4) for _ in range(dims))
        return (_image(b, dtypes, dims),), {"size": size, "indices": b.boolean(), "result": b.draw(1)}

    return build


def _windows(dims, dtypes):
    def build(b):
        kernel = tuple(b.integer(1, 3) for _ in range(dims))
        attrs = {"kernel": kernel, "stride": b.integer(1, 3), "padding": tuple(b.integer(0, k // 2) for k in kernel)}
        more = {"ceil": b.boolean(), "indices": b.boolean(), "result": b.draw(1), "dilation": b.integer(1, 2)}
        return (_image(b, dtypes, dims, 3),), {**attrs, **more}

    return build


def _max_pool(a, k, dims):
    pool = getattr(functional, f"max_pool{dims}d")
    ways = {"dilation": k["dilation"], "ceil_mode": k["ceil"], "return_indices": k["indices"]}
    return pool(a[0], k["kernel"], k["stride"], k["padding"], **ways)


for _dims in (1, 2, 3):
    row(
        f"adaptive_avg_pool{_dims}d",
        _adaptive(_dims, FLOATS),
        lambda a, k, dims=_dims: getattr(functional, f"adaptive_avg_pool{dims}d")(a[0], k["size"]),
    )
    row(
        f"adaptive_max_pool{_dims}d",
        _adaptive(_dims, FLOATS),
        lambda a, k, dims=_dims: getattr(functional, f"adaptive_max_pool{dims}d")(
            a[0], k["size"], return_indices=k["indices"]
        ),
    )
    row(f"torch_max_pool{_dims}d", _windows(_dims, _POOLED), lambda a, k, dims=_dims: _max_pool(a, k, dims), 2)
    row(
        f"torch_avg_pool{_dims}d",
        _windows(_dims, (*FLOATS, "i64")),
        lambda a, k, dims=_dims: getattr(functional, f"avg_pool{dims}d")(
            a[0], k["kernel"], k["stride"], k["padding"], k["ceil"], k["indices"]
        ),
    )

_MODES = {
    1: ("nearest", "linear", "area", "nearest-exact"),
    2: ("nearest", "bilinear", "bicubic", "area", "nearest-exact"),
    3: ("nearest", "trilinear", "area", "nearest-exact"),
}


def _resized(dims):
    def build(b):
        image = _image(b, (*FLOATS, "u8"), dims)
        if b.type(image).rank != dims + 2:
            return None
        mode = b.choose(_MODES[dims])
        size = tuple(b.integer(1, 9 if dims < 3 else 5) for _ in range(dims))
        return (image,), {"size": size, "mode": mode, "corners": b.boolean() if "linear" in mode else None}

    return build


for _dims in (1, 2, 3):
    row(
        f"interpolate{_dims}d",
        _resized(_dims),
        lambda a, k: functional.interpolate(a[0], k["size"], mode=k["mode"], align_corners=k["corners"]),
    )
