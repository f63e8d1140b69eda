# SPDX-License-Identifier: Apache-2.0
"""Dask arrays: the results of the whole array, whatever the chunks; by threads, and by workers of which one is killed.

TCONV_CL_TEST_TASKS is the number of slabs for eight threads, 200 without it. TCONV_CL_TEST_LARGE=1 also computes a
volume that is larger than what its workers may take.
"""

import os
import pickle
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("dask", reason="python/requirements-dask.txt has what these tests need")
pytest.importorskip("distributed")
pytest.importorskip("zarr")

import dask
import dask.array as da
import distributed
import zarr
from dask.diagnostics import ProgressBar
from dask.utils import key_split
from test_threads import resident_bytes
from test_vectors import CASES, attributes, load

import tconv_cl
import tconv_cl.dask

TASKS = int(os.environ.get("TCONV_CL_TEST_TASKS", "200"))
LARGE = os.environ.get("TCONV_CL_TEST_LARGE") == "1"


def integers(random, shape, dtype=np.float32):
    return random.integers(-8, 8, shape).astype(dtype)


def chunked(random, array):
    """A Dask array of the same elements, in chunks of random extents."""
    chunks = []
    for extent in array.shape:
        cuts = random.choice(max(extent - 1, 1), min(max(extent - 1, 0), random.integers(0, 4)), replace=False) + 1
        chunks.append(tuple(int(size) for size in np.diff([0, *sorted(cuts), extent])))
    return da.from_array(array, chunks=tuple(chunks))


# ---- the same results ----


@pytest.mark.parametrize("row", CASES, ids=lambda row: row["id"])
def test_vector(row):
    random = np.random.default_rng(3)
    data, filter, wanted = (load("data", row["id"], what) for what in ("data", "filter", "output"))
    options = attributes(row)
    if row["op"] == "conv_backprop":
        options |= {"data_format": row["data_format"], "filter_format": row["filter_format"]}
        if row["groups"] != "1":
            options["groups"] = int(row["groups"])
    options["rules"] = row["rules"].split()[0]
    output = tconv_cl.dask.conv_transpose(chunked(random, data), filter, chunks=int(random.integers(1, 6)), **options)
    assert (output.shape, output.dtype) == (wanted.shape, wanted.dtype)
    output = output.compute(scheduler="threads")
    if row["check"] == "exact":
        np.testing.assert_array_equal(output, wanted)
    else:
        assert np.all(np.abs(output.astype(np.float64) - wanted) <= load("data", row["id"], "bound"))


def random_request(random):
    """Data, filter and options of any kind that is sound."""
    axes = int(random.integers(1, 4))
    numbers = lambda low, high: [int(number) for number in random.integers(low, high, axes)]
    spatial, kernel = numbers(2, 14 - 3 * axes), numbers(1, 5)
    groups, channels, outputs = int(random.integers(1, 4)), int(random.integers(1, 4)), int(random.integers(1, 4))
    options = dict(strides=numbers(1, 8 - axes), dilations=numbers(1, 4), pads_begin=numbers(0, 3))
    options["rules"] = str(random.choice(["spec", "openvino", "onnx"]))
    options["auto_pad"] = str(random.choice(["explicit", "valid", "same_upper", "same_lower"]))
    options["output_padding"] = numbers(0, 3)
    if random.random() < 0.3:
        options["output_shape"] = numbers(1, 40 // axes)
    shape = (int(random.integers(1, 4)), groups * channels, *spatial)
    form = random.integers(3)
    if form == 0:
        filter = (groups, channels, outputs, *kernel)
    elif form == 1:
        filter = (groups * channels, outputs, *kernel)
    else:
        shape = (shape[0], *spatial, groups * channels)
        filter = (*kernel, outputs, groups * channels)
        options |= dict(groups=groups, data_format="NXC", filter_format="XIO")
    return shape, filter, options


@pytest.mark.parametrize("seed", range(60))
def test_random_request(seed):
    random = np.random.default_rng(seed)
    while True:
        shape, filter, options = random_request(random)
        try:
            output = tconv_cl.output_shape(shape, filter, **options)
            break
        except tconv_cl.RequestError:  # pads beyond the output
            continue
    dtype = random.choice([np.float32, np.float64, np.int32])
    data, filter, residual = (integers(random, size, dtype) for size in (shape, filter, output))
    rows = 1 if options.get("data_format") == "NXC" else 2
    channels = output[-1] if rows == 1 else output[1]
    bias = integers(random, channels, dtype)
    options["algorithm"] = "reference"  # the others take more time to compile than to compute
    wanted = tconv_cl.conv_transpose(data, filter, bias, residual=residual, **options)
    got = tconv_cl.dask.conv_transpose(
        chunked(random, data),
        filter,
        chunked(random, bias),
        residual=chunked(random, residual),
        chunks="auto" if seed % 3 else int(random.integers(1, output[rows] + 1)),
        memory_limit=[None, 200, "10 kB"][seed % 3] if seed % 3 != 1 else 4096,
        **options,
    )
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_array_equal(got.compute(scheduler="threads"), wanted)


def test_the_same_algorithm_gives_the_same_bits():
    random = np.random.default_rng(1)
    data, filter = random.random((2, 8, 40, 30), np.float32), random.random((8, 4, 5, 5), np.float32)
    options = dict(strides=2, pads_begin=2, activation="gelu", algorithm="reference")
    wanted = tconv_cl.conv_transpose(data, filter, **options)
    got = tconv_cl.dask.conv_transpose(da.from_array(data, chunks=(1, 8, 7, 30)), filter, **options)
    np.testing.assert_array_equal(got.compute(), wanted)


def test_epilogue_and_types():
    random = np.random.default_rng(2)
    data, filter = integers(random, (2, 4, 9, 6), np.int8), integers(random, (4, 6, 3, 2), np.int8)
    scale = random.random(6, np.float32)
    options = dict(strides=2, requantize=True, output_type="u8", data_zero_point=3, output_zero_point=9)
    wanted = tconv_cl.conv_transpose(data, filter, scale=scale, **options)
    got = tconv_cl.dask.conv_transpose(chunked(random, data), filter, scale=scale, **options)
    assert got.dtype == np.uint8
    np.testing.assert_array_equal(got.compute(), wanted)
    data, filter, slope = (integers(random, shape, np.float32) for shape in ((2, 4, 9), (4, 6, 3), 6))
    options = dict(alpha=0.5, activation="prelu")
    wanted = tconv_cl.conv_transpose(data, filter, slope=slope, **options)
    got = tconv_cl.dask.conv_transpose(chunked(random, data), da.from_array(filter, chunks=2), slope=slope, **options)
    np.testing.assert_array_equal(got.compute(), wanted)


@pytest.mark.parametrize("batch", [(0,), (2, 0, 1)])
def test_empty_batches(batch):
    data, filter = np.ones((sum(batch), 2, 8), np.float32), np.ones((2, 3, 4), np.float32)
    got = tconv_cl.dask.conv_transpose(da.from_array(data, chunks=(batch, 1, 3)), filter, strides=2)
    np.testing.assert_array_equal(got.compute(), tconv_cl.conv_transpose(data, filter, strides=2))


# ---- tasks ----


def test_tasks():
    data, filter = da.zeros((3, 4, 100, 50), chunks=(2, 3, 10, 20), dtype=np.float32), np.ones((4, 2, 4, 4), np.float32)
    options = dict(strides=[3, 2], pads_begin=1)
    output = tconv_cl.dask.conv_transpose(data, filter, **options)
    assert output.shape == tconv_cl.output_shape(data.shape, filter.shape, **options)
    assert output.chunks == ((2, 1), (2,), (30,) * 10, (101,))  # three rows for each of the data, from chunks of ten
    assert output.name == tconv_cl.dask.conv_transpose(data, filter, **options).name
    assert output.name != tconv_cl.dask.conv_transpose(data, 2 * filter, **options).name
    names = Counter(key_split(key) for key in dask.optimize(output)[0].dask)
    assert names["conv-transpose"] == 20 and names["conv-transpose-filter"] == 1
    # A row of the output is 808 bytes of an item, and a row of the data 800.
    assert tconv_cl.dask.conv_transpose(data, filter, memory_limit="100 kB", **options).chunks[2] == (30,) * 10
    smaller = tconv_cl.dask.conv_transpose(data, filter, memory_limit="40 kB", **options)
    assert smaller.chunks[:3] == ((2, 1), (2,), (15,) * 20)
    assert tconv_cl.dask.conv_transpose(data, filter, memory_limit=6000, **options).chunks[0] == (1, 1, 1)
    assert tconv_cl.dask.conv_transpose(data, filter, chunks=(250, 50), **options).chunks[2] == (250, 50)
    assert tconv_cl.dask.conv_transpose(data, filter, chunks=np.array([250, 50]), **options).chunks[2] == (250, 50)
    assert tconv_cl.dask.conv_transpose(data, filter, chunks=-1, **options).chunks[2] == (300,)


def test_the_filter_is_packed_once(monkeypatch):
    layers = []
    make = tconv_cl._device.Layer
    tconv_cl.clear_cache()
    tconv_cl._device.opened(tconv_cl._device.number_of(None))  # with a layer of its own
    monkeypatch.setattr("tconv_cl._device.Layer", lambda *a, **k: layers.append(make(*a, **k)) or layers[-1])
    data = da.ones((1, 4, 200), chunks=10, dtype=np.float32)
    filter = np.ones((4, 4, 3), np.float32)
    # "auto" may take several algorithms, and packs for each.
    output = tconv_cl.dask.conv_transpose(data, filter, strides=2, algorithm="reference")
    output.compute(scheduler="sync")
    assert output.npartitions == 21 and len(layers) == 1
    counts = layers[0].counts()
    assert (counts.runs, counts.plans_made, counts.filters_packed) == (
        21,
        3,
        1,
    )  # the first slab, those inside, the last


def test_tasks_above_the_limit_are_computed_in_slabs(monkeypatch):
    layers = []
    make = tconv_cl._device.Layer
    monkeypatch.setattr("tconv_cl._device.Layer", lambda *a, **k: layers.append(make(*a, **k)) or layers[-1])
    data, filter = np.ones((1, 2, 400), np.float32), np.ones((2, 2, 3), np.float32)
    arguments = (da.from_array(data, chunks=100), filter)
    got = tconv_cl.dask.conv_transpose(*arguments, chunks=201, memory_limit=2000)
    np.testing.assert_array_equal(got.compute(), tconv_cl.conv_transpose(data, filter))
    assert sum(layer.counts().in_slabs for layer in layers) == 2
    tconv_cl.dask.conv_transpose(*arguments, memory_limit=2000).compute()
    assert layers[-1].counts().in_slabs == 0


def test_requests():
    data, filter = da.ones((1, 2, 8), dtype=np.float32), np.ones((2, 3, 3), np.float32)
    requests = {
        "data is a ndarray: it must be a Dask array": dict(data=np.ones((1, 2, 8))),
        r"call its compute_chunk_sizes\(\) first": dict(data=data[:, :, data[0, 0] > 0]),
        "filter is a list: it must be a NumPy or a Dask": dict(filter=[1]),
        "bias has shape": dict(bias=np.ones(2, np.float32)),
        "residual has shape": dict(residual=np.ones((1, 3, 9), np.float32)),
        "there is no out": dict(beta=1),
        "strides is 0": dict(strides=0),
        "data has 2 channels": dict(groups=3),
        r"chunks is \(0, 10\): a chunk has 0 output rows": dict(chunks=(0, 10)),
        "chunks is 0: ": dict(chunks=0),
        "chunks is -3: ": dict(chunks=-3),
        "memory_limit is 0": dict(memory_limit=0),
        "memory_limit is 'zz': write bytes": dict(memory_limit="zz"),
        "chunks is 'a': ": dict(chunks="a"),
    }
    for sentence, arguments in requests.items():
        with pytest.raises(tconv_cl.RequestError, match=sentence):
            tconv_cl.dask.conv_transpose(**(dict(data=data, filter=filter) | arguments))
    for arguments in (
        dict(data=[1]),
        dict(filter=[1]),
        dict(memory_limit=[]),
        dict(memory_limit=b"1"),
        dict(chunks={}),
    ):
        with pytest.raises(tconv_cl.RequestTypeError, match=f"{next(iter(arguments))} is "):
            tconv_cl.dask.conv_transpose(**(dict(data=data, filter=filter) | arguments))
    with pytest.raises(tconv_cl.RequestError, match="no distributed worker runs this task"):
        tconv_cl.dask.conv_transpose(data, filter, device="worker").compute()
    with pytest.raises(tconv_cl.Error, match="device 99 does not exist"):
        tconv_cl.dask.conv_transpose(data, filter, device=99).compute()
    with pytest.raises(tconv_cl.Error, match='no device is "abacus"'):
        tconv_cl.dask.conv_transpose(data, filter, device="abacus").compute()


def test_device_by_name():
    data, filter = np.ones((1, 2, 8), np.float32), np.ones((2, 3, 3), np.float32)
    name = tconv_cl.devices()[0].name
    for device in (name, [name], "0"):
        got = tconv_cl.dask.conv_transpose(da.from_array(data, chunks=4), filter, device=device)
        np.testing.assert_array_equal(got.compute(), tconv_cl.conv_transpose(data, filter, device=device))


def test_nothing_is_opened_before_it_is_computed():
    program = """
import dask.array as da, numpy as np, tconv_cl, tconv_cl.dask
output = tconv_cl.dask.conv_transpose(da.ones((1, 1, 9), chunks=4, dtype="f4"), np.ones((1, 1, 3), "f4"), strides=2)
print(output.shape)
try:
    output.compute()
except tconv_cl.Error as error:
    print(error)
"""
    environment = {**os.environ, "OCL_ICD_VENDORS": "/nowhere"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("(1, 1, 19)\nno OpenCL device was found"), done.stdout


def test_zarr(tmp_path, capsys):
    random = np.random.default_rng(4)
    data, filter = integers(random, (1, 2, 40, 12, 10)), integers(random, (2, 3, 4, 4, 4))
    zarr.create_array(str(tmp_path / "in.zarr"), data=data, chunks=(1, 1, 8, 8, 8))
    volume = da.from_zarr(str(tmp_path / "in.zarr"))
    output = tconv_cl.dask.conv_transpose(volume, filter, strides=2, pads_begin=1, pads_end=1)
    with ProgressBar():
        output.to_zarr(str(tmp_path / "out.zarr"))
    assert "100% Completed" in capsys.readouterr().out
    written = zarr.open_array(str(tmp_path / "out.zarr"), mode="r")
    assert written.chunks == (1, 3, 16, 24, 20)
    wanted = tconv_cl.conv_transpose(data, filter, strides=2, pads_begin=1, pads_end=1)
    np.testing.assert_array_equal(written[...], wanted)


def test_the_program_of_the_documentation(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "dask.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    program = next(block for block in blocks if "ProgressBar" in block)
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "100% Completed" in done.stdout
    data, output = (zarr.open_array(str(tmp_path / name), mode="r")[...] for name in ("volume.zarr", "upsampled.zarr"))
    filter = np.full((1, 2, 4, 4, 4), 1 / 64, np.float32)
    wanted = tconv_cl.conv_transpose(data, filter, strides=2, pads_begin=1, pads_end=1)
    np.testing.assert_allclose(output, wanted, rtol=64 * 2**-24, atol=0)  # 8 products of numbers above 0, in any order


def test_eight_threads():
    random = np.random.default_rng(5)
    data, filter = integers(random, (1, 4, 4 * TASKS, 8)), integers(random, (4, 2, 3, 3))
    options = dict(strides=2, pads_begin=1, pads_end=1, output_padding=1)
    wanted = tconv_cl.conv_transpose(data, filter, **options)
    output = tconv_cl.dask.conv_transpose(da.from_array(data, chunks=(1, 4, 4, 8)), filter, **options)
    assert output.npartitions == TASKS

    def compute():
        with dask.config.set(scheduler="threads", num_workers=8):
            np.testing.assert_array_equal(output.compute(), wanted)

    for _ in range(3):
        compute()
    before = resident_bytes()
    for _ in range(3):
        compute()
    grown = resident_bytes() - before
    print(f"{TASKS} tasks on 8 threads, three times: resident memory grew by {grown / 2**20:.1f} MiB")
    assert grown < 8 << 20


# ---- worker processes ----


def cluster_of(memory_limit):
    """Two workers with one thread each, in processes of their own, which are spawned."""
    dask.config.set({"distributed.worker.multiprocessing-method": "spawn"})
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=memory_limit
    )


@pytest.fixture(scope="module")
def client():
    with cluster_of("2 GiB") as cluster, distributed.Client(cluster) as client:
        yield client


def kill_one(client, done):
    """Kills a worker as soon as `done` says that enough is done; returns its process."""
    while not done():
        time.sleep(0.01)
    pid = next(iter(client.run(os.getpid).values()))
    os.kill(pid, signal.SIGKILL)
    return pid


def test_workers(client):
    random = np.random.default_rng(6)
    data, filter = integers(random, (2, 4, 64, 16)), integers(random, (4, 4, 4, 4))
    output = tconv_cl.dask.conv_transpose(da.from_array(data, chunks=(1, 4, 4, 16)), filter, strides=2, device="worker")
    assert pickle.loads(pickle.dumps(output)).name == output.name
    np.testing.assert_array_equal(output.compute(), tconv_cl.conv_transpose(data, filter, strides=2))
    computed = client.run(lambda: __import__("tconv_cl").cache_info().hits)
    assert len(computed) == 2 and all(computed.values())
    devices = [client.submit(tconv_cl.dask._worker_device, workers=[worker], pure=False) for worker in computed]
    assert sorted(client.gather(devices)) == sorted(number % len(tconv_cl.devices()) for number in (0, 1))


def test_an_error_of_a_worker_arrives(client):
    data = da.ones((1, 1, 8), dtype=np.float32)
    with pytest.raises(tconv_cl.RequestError, match="there is no such algorithm") as caught:
        tconv_cl.dask.conv_transpose(data, np.ones((1, 1, 3), np.float32), algorithm="magic").compute()
    assert caught.value.status == 7  # TCONV_ERROR_ALGORITHM


def test_a_worker_is_killed(client):
    random = np.random.default_rng(7)
    data, filter = random.random((1, 16, 240, 64), np.float32), random.random((16, 16, 4, 4), np.float32)
    options = dict(strides=2, algorithm="reference")
    output = tconv_cl.dask.conv_transpose(da.from_array(data, chunks=(1, 16, 4, 64)), filter, **options)
    output = client.persist(output)
    futures = distributed.futures_of(output)
    held = lambda: [sum("conv-transpose-" in str(key) for key in keys) for keys in client.has_what().values()]
    pid = kill_one(client, lambda: len(held()) == 2 and min(held()) >= 8)
    unfinished = sum(not future.done() for future in futures)
    assert unfinished > 0
    np.testing.assert_array_equal(output.compute(), tconv_cl.conv_transpose(data, filter, **options))
    client.wait_for_workers(2)
    assert pid not in client.run(os.getpid).values()


@pytest.mark.skipif(not LARGE, reason="TCONV_CL_TEST_LARGE=1 computes a volume of 2 GiB with workers of 400 MiB")
def test_a_volume_larger_than_the_workers(tmp_path):
    limit = 400 << 20
    random = np.random.default_rng(8)
    shape, chunks = (1, 1, 2048, 128, 128), (1, 1, 32, 128, 128)
    store = zarr.create_array(str(tmp_path / "in.zarr"), shape=shape, chunks=chunks, dtype="f4")
    for begin in range(0, 2048, 32):
        store[:, :, begin : begin + 32] = random.random(chunks, np.float32)
    filter = random.random((1, 2, 4, 4, 4), np.float32)
    options = dict(strides=2, pads_begin=1, pads_end=1, algorithm="packed_vector")
    with cluster_of(limit) as cluster, distributed.Client(cluster) as client:
        before = client.run(peak_bytes)
        volume = da.from_zarr(str(tmp_path / "in.zarr"))
        output = tconv_cl.dask.conv_transpose(volume, filter, memory_limit="16 MiB", **options)
        assert output.nbytes == 2 << 30
        started = time.monotonic()
        writing = client.compute(output.to_zarr(str(tmp_path / "out.zarr"), compute=False))
        written = lambda: len(list((tmp_path / "out.zarr").rglob("c/0/0/*/0/0")))
        peaks = {}

        def watch(enough):
            peaks.update(client.run(peak_bytes, on_error="ignore"))
            time.sleep(0.1)
            return enough

        kill_one(client, lambda: watch(written() >= output.numblocks[2] // 3))
        assert written() < output.numblocks[2]
        while not writing.done():
            watch(False)
        writing.result()
        seconds = time.monotonic() - started
        peaks.update(client.run(peak_bytes))
    for address, peak in peaks.items():
        print(f"{address}: {peak / 2**20:.0f} MiB at most")
    print(f"before the first task: {max(before.values()) / 2**20:.0f} MiB")
    print(f"{volume.nbytes >> 20} MiB to {output.nbytes >> 20} MiB in {output.npartitions} tasks and {seconds:.0f} s")
    assert max(peaks.values()) <= limit
    written = zarr.open_array(str(tmp_path / "out.zarr"), mode="r")
    for begin in range(0, 4096, 256):  # the whole, in windows that the tasks did not have
        window = (begin, begin + 256)
        first, last = tconv_cl.window_input(volume.shape, filter.shape, window, **options)
        part = dict(output_rows=window, data_rows=2048)
        wanted = tconv_cl.conv_transpose(store[:, :, first:last], filter, **options, **part)
        np.testing.assert_array_equal(written[:, :, begin : begin + 256], wanted)


def peak_bytes():
    """The most memory that this process had resident."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


@pytest.mark.parametrize("shape, wanted", [((1, 4, 0, 5), (1, 3, 9, 11)), ((2, 4, 3, 0), (2, 3, 9, 11))], ids=str)
def test_empty_data(shape, wanted):
    filter, bias = np.ones((4, 3, 3, 3), np.float32), np.arange(3, dtype=np.float32)
    data = da.zeros(shape, dtype=np.float32)
    for chunks in ("auto", 2):
        output = tconv_cl.dask.conv_transpose(data, filter, bias, strides=2, output_shape=[9, 11], chunks=chunks)
        np.testing.assert_array_equal(output.compute(), np.broadcast_to(bias[:, None, None], wanted))
