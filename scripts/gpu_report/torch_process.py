# SPDX-License-Identifier: Apache-2.0
"""PyTorch in a process of its own, which is loaded once: times layers as it is asked."""

import contextlib
import json
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time

from layers import suite

LIMIT = 60  # seconds for a layer


def numbers(layer, name):
    return [int(text) for text in layer[name].split("x")]


def torch_layer(torch, layer, kind, device):
    """A function that computes the layer once. An exception is a refusal."""
    element, order = kind.split("-")
    rank = len(numbers(layer, "input"))
    if rank > 3:
        raise ValueError("it knows up to three axes")
    begin, end = numbers(layer, "pads_begin"), numbers(layer, "pads_end")
    strides, dilations = numbers(layer, "strides"), numbers(layer, "dilations")
    # Its pads are the same at both ends; what the end has less of becomes output padding.
    extra = [o + b - e for o, b, e in zip(numbers(layer, "output_padding"), begin, end)]
    if any(not 0 <= x < max(s, d) for x, s, d in zip(extra, strides, dilations)):
        raise ValueError("it does not have these pads")
    channels, groups = int(layer["in_channels"]), int(layer["groups"])
    # Without TF32 it is exact, as tconv-cl is by default.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = element == "tf32"
    kinds = {"device": device, "dtype": {"f16": torch.float16, "bf16": torch.bfloat16}.get(element, torch.float32)}
    # The distribution of the tool's tensors.
    data = torch.rand(int(layer["batch"]), channels, *numbers(layer, "input"), **kinds) * 4 - 2
    weights = torch.rand(channels, int(layer["out_channels"]) // groups, *numbers(layer, "kernel"), **kinds) * 4 - 2
    if order == "NXC":
        if rank == 1:
            raise ValueError("its channels last are of two or three axes")
        memory = torch.channels_last if rank == 2 else torch.channels_last_3d
        data, weights = data.contiguous(memory_format=memory), weights.contiguous(memory_format=memory)
    convolve = getattr(torch.nn.functional, "conv_transpose%dd" % rank)
    return lambda: convolve(data, weights, None, strides, begin, extra, groups, dilations)


def graph_ms(torch, run):
    """Of a GPU: the mean of computations in a graph, the median of several; none is waited for (bench --repeat)."""
    for _ in range(3):  # cuDNN chooses
        run()
    torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    torch.cuda.synchronize()
    count, times = 20 if time.perf_counter() - start < 0.005 else 4, []
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            run()
    for _ in range(9):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / count)
    return sorted(times)[len(times) // 2]


def loop_ms(run):
    """Of a CPU: the median of many runs, up to half a second of them, as bench has it."""
    run()
    times, begin = [], time.perf_counter()
    while len(times) < 5 or (len(times) < 100 and time.perf_counter() - begin < 0.5):
        start = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - start))
    return sorted(times)[len(times) // 2]


def torch_worker(processor, name):
    """Reads lines "KIND ID,ID"; writes one line of JSON for itself, one for each layer, and {} after each request."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what libraries print is not an answer

    def answer(value):
        answers.write(json.dumps(value) + "\n")

    try:
        import torch
    except ImportError as error:
        return answer({"error": "PyTorch is not installed (%s)" % error})
    device = "cpu"
    if processor == "GPU":
        if not torch.cuda.is_available():
            return answer({"error": "PyTorch %s does not find a GPU" % torch.__version__})
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        if name not in names and len(set(names)) > 1:  # a single card is it, whatever it is called
            return answer({"error": "PyTorch has no %s, but %s" % (name, ", ".join(sorted(set(names))))})
        device = "cuda:%d" % (names.index(name) if name in names else 0)
        torch.cuda.set_device(device)
        torch.backends.cudnn.benchmark = True
    about = "CPU"
    if device != "cpu":
        about = "%s, cuDNN %s" % (torch.cuda.get_device_name(), torch.backends.cudnn.version())
    answer({"version": torch.__version__, "device": about})
    layers = {layer["id"]: layer for layer in suite()}
    for line in sys.stdin:
        kind, ids = line.split()
        for key in ids.split(","):
            try:
                with torch.no_grad():
                    run = torch_layer(torch, layers[key], kind, device)
                    answer({"id": key, "ms": loop_ms(run) if device == "cpu" else graph_ms(torch, run)})
            except (ValueError, RuntimeError) as error:
                answer({"id": key, "error": (str(error).splitlines() or [type(error).__name__])[0]})
            run = None
            if device != "cpu":
                torch.cuda.empty_cache()  # the next slice of ours needs it
        answer({})
    return None


class Torch:
    """The process with PyTorch. `about` is what it says of itself, once it was asked."""

    def __init__(self, python, processor, name, log):
        self.command = [python, os.path.abspath(__file__), processor, name]
        self.log, self.about, self.process = log, None, None
        self.start()

    def start(self):
        self.answers = queue.Queue()
        try:
            with open(self.log, "ab") as log:
                self.process = subprocess.Popen(
                    self.command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    start_new_session=True,
                )
        except OSError as error:
            self.process, self.about = None, {"error": "PyTorch was not started: %s" % error}
            return
        threading.Thread(target=self.listen, args=(self.process, self.answers), daemon=True).start()

    @staticmethod
    def listen(process, answers):
        for line in process.stdout:
            with contextlib.suppress(ValueError):  # the process was killed while it wrote
                answers.put(json.loads(line))
        answers.put(None)  # it ended

    def answer(self, over, limit=math.inf):
        """The next answer; None if it ended, or was ended after `limit` seconds; "over" if no time is left to wait."""
        begin = time.time()
        while True:
            try:
                return self.answers.get(timeout=0.2)
            except queue.Empty:
                if over() or time.time() - begin > limit:
                    self.end()
                    return "over" if over() else None

    def end(self):
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def time(self, kind, ids, over):
        """Yields the layers' results as they come."""
        if self.about and "error" in self.about:
            return
        if self.about and self.process and self.process.poll() is not None:
            self.end()  # while ours ran; the next layer is not to blame
        if self.process is None:
            self.start()
            self.about = None
        if self.about is None:
            about = self.answer(over)
            if about == "over":
                return
            self.about = about or {"error": "PyTorch ended (torch.log)"}
            if "error" in self.about:
                return
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write("%s %s\n" % (kind, ",".join(ids)))
            self.process.stdin.flush()
        for key in [*ids, None]:
            result = self.answer(over, LIMIT)
            if result == "over":
                return
            if result is None:
                result = {"id": key, "error": "PyTorch ended (torch.log), or took more than %d s" % LIMIT}
                ended = True
            else:
                ended = "CUDA error" in result.get("error", "")  # after it, all calls of that process fail
            if key:
                yield result
            if ended:  # a new process does the next layers
                self.end()
                if key and key != ids[-1]:
                    yield from self.time(kind, ids[ids.index(key) + 1 :], over)
                return


if __name__ == "__main__":
    torch_worker(*sys.argv[1:])
