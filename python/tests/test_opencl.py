# SPDX-License-Identifier: Apache-2.0
"""pyopencl arrays: on the caller's queue, in the caller's memory, without waiting."""

import numpy as np
import pyopencl
import pyopencl.array
import pyopencl.tools
import pytest

import tconv_cl

DATA = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
FILTER = np.arange(18, dtype=np.float32).reshape(3, 2, 3)
WANTED = tconv_cl.conv_transpose(DATA, FILTER)


def to_device(queue, *arrays):
    return [pyopencl.array.to_device(queue, array) for array in arrays]


OUT_OF_ORDER = pyopencl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE


@pytest.fixture(params=[0, OUT_OF_ORDER], ids=["in order", "out of order"])
def any_queue(request, queue):
    return pyopencl.CommandQueue(queue.context, queue.device, request.param)


def test_nothing_waits_and_nothing_goes_to_the_host(any_queue):
    data, filter, source = to_device(any_queue, np.zeros_like(DATA), FILTER, DATA)
    any_queue.finish()
    gate = pyopencl.UserEvent(any_queue.context)
    # The data come behind a gate that only this thread opens: a call that read them, or waited, would never return.
    ready = pyopencl.enqueue_copy(any_queue, data.base_data, source.base_data, wait_for=[gate])
    data.add_event(ready)
    output = tconv_cl.conv_transpose(data, filter)
    (done,) = output.events
    assert output.queue.int_ptr == any_queue.int_ptr
    assert done.command_type in (pyopencl.command_type.NDRANGE_KERNEL, pyopencl.command_type.MARKER)
    assert done.command_execution_status != pyopencl.command_execution_status.COMPLETE
    gate.set_status(pyopencl.command_execution_status.COMPLETE)
    np.testing.assert_array_equal(output.get(), WANTED)


def test_places_inside_buffers(queue):
    """Views with offsets, of data, filter and output; what lies around the output stays as it was."""
    data, filter = to_device(queue, *(np.concatenate([array[:1] * np.nan, array]) for array in (DATA, FILTER)))
    whole = pyopencl.array.zeros(queue, (4, *WANTED.shape[1:]), np.float32) + 7
    out = whole[1:3]
    assert tconv_cl.conv_transpose(data[1:], filter[1:], out=out) is out
    np.testing.assert_array_equal(out.get(), WANTED)
    np.testing.assert_array_equal(whole.get()[[0, 3]], np.full((2, *WANTED.shape[1:]), 7))


def test_the_allocator_of_the_data(queue):
    calls = []

    def allocator(size):
        calls.append(size)
        return pyopencl.Buffer(queue.context, pyopencl.mem_flags.READ_WRITE, size)

    data = pyopencl.array.to_device(queue, DATA, allocator=allocator)
    calls.clear()
    output = tconv_cl.conv_transpose(data, *to_device(queue, FILTER))
    assert calls == [output.nbytes]


def test_a_layer_on_two_queues(queue):
    """The filter is packed on the first queue, and used on the second one: the event orders them."""
    other = pyopencl.CommandQueue(queue.context, queue.device)
    layer = tconv_cl.ConvTranspose(*to_device(queue, FILTER))
    outputs = [layer(*to_device(each, DATA)) for each in (queue, other)]
    for output in outputs:
        np.testing.assert_array_equal(output.get(), WANTED)
    assert layer._layers.packed() == 1


def test_a_layer_for_extents_of_one(queue):
    """An axis of extent 1 with a kernel of 1 is none for the library: the weights are packed in another layout."""
    random = np.random.default_rng(1)
    filter = random.random((2, 3, 3, 1), np.float32)
    layer = tconv_cl.ConvTranspose(*to_device(queue, filter), algorithm="packed_vector")
    for extents in ((5, 4), (5, 1), (6, 4)):
        data = random.random((1, 2, *extents), np.float32)
        wanted = tconv_cl.conv_transpose(data, filter, algorithm="packed_vector")
        np.testing.assert_array_equal(layer(*to_device(queue, data)).get(), wanted)
    assert layer._layers.packed() == 2


def test_nothing_of_the_caller_is_kept(queue):
    context = pyopencl.Context([queue.device])
    own = pyopencl.CommandQueue(context)
    counts = []
    idle = context.reference_count
    for _ in range(8):
        tconv_cl.conv_transpose(*to_device(own, DATA, FILTER)).get()
        own.finish()
        assert context.reference_count > idle  # of the device and, with some drivers, of kernels and programs
        tconv_cl.clear_cache()
        counts.append(context.reference_count)
    assert min(counts[4:]) <= counts[0]  # the same in the end; some drivers give back a little later


def test_contexts_are_bounded(queue):
    tconv_cl.clear_cache()
    for _ in range(10):
        context = pyopencl.Context([queue.device])
        own = pyopencl.CommandQueue(context)
        np.testing.assert_array_equal(tconv_cl.conv_transpose(*to_device(own, DATA, FILTER)).get(), WANTED)
    assert tconv_cl.cache_info().devices == 8


def test_a_part_of_a_device(queue):
    """A context of a part, as clCreateSubDevices makes it. PoCL's lists the whole device."""
    if queue.device.partition_max_sub_devices < 2:
        pytest.skip("the device has no parts")
    parts = queue.device.create_sub_devices([pyopencl.device_partition_property.EQUALLY, 1])
    own = pyopencl.CommandQueue(pyopencl.Context(parts[:1]), parts[0])
    np.testing.assert_array_equal(tconv_cl.conv_transpose(*to_device(own, DATA, FILTER)).get(), WANTED)


def test_arrays_in_shared_memory(queue):
    """Arrays of pyopencl's SVMAllocator, all of them or mixed with buffers, and views of them."""
    if not queue.device.svm_capabilities & pyopencl.device_svm_capabilities.COARSE_GRAIN_BUFFER:
        pytest.skip("the device has no shared virtual memory")
    shared = pyopencl.tools.SVMAllocator(queue.context, flags=pyopencl.svm_mem_flags.READ_WRITE, queue=queue)
    for allocators in ((shared, shared), (shared, None), (None, shared)):
        data, filter = (
            pyopencl.array.to_device(queue, array, allocator=allocator)
            for array, allocator in zip((DATA, FILTER), allocators)
        )
        output = tconv_cl.conv_transpose(data, filter)
        assert type(output.base_data) is type(data.base_data)
        np.testing.assert_array_equal(output.get(), WANTED)
        whole = pyopencl.array.empty(queue, (2, 4, WANTED.shape[2]), np.float32, allocator=allocators[0])
        whole.fill(7)
        tconv_cl.ConvTranspose(filter)(data, out=whole[:, 1:3])
        np.testing.assert_array_equal(whole.get()[:, 1:3], WANTED)
        np.testing.assert_array_equal(whole.get()[:, ::3], np.full((2, 2, WANTED.shape[2]), 7))
    with pytest.raises(tconv_cl.RequestError, match="out shares memory with filter"):
        tconv_cl.conv_transpose(data, filter, out=filter.reshape(-1)[:18].reshape(1, 3, 6)[:, :2])


def test_arrays_of_another_context(queue):
    context = pyopencl.Context([queue.device])
    foreign = pyopencl.CommandQueue(context)
    bias = np.zeros(2, np.float32)
    for name in ("filter", "bias", "out"):
        arrays = {
            each: pyopencl.array.to_device(foreign if each == name else queue, array)
            for each, array in (("filter", FILTER), ("bias", bias), ("out", np.full_like(WANTED, 7)))
        }
        with pytest.raises(tconv_cl.RequestError, match=f"^{name} belongs to another context than the queue of data"):
            tconv_cl.conv_transpose(*to_device(queue, DATA), **arrays)
        np.testing.assert_array_equal(arrays["out"].get(), np.full_like(WANTED, 7))
