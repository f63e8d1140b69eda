#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times tconv-cl side by side with other systems on this machine's CPU, in f32.

    python3 -m venv peers && peers/bin/pip install -r bench/peers.txt
    peers/bin/python bench/compare.py --tool build/tconv-cl --json compare.json --table compare.md --picture compare.svg
    peers/bin/python bench/compare.py --tool build/tconv-cl --ids B07,B32

Every layer is timed by all in turn, several rounds, so that a busy moment of the machine hits everybody. Weights are constant and outputs
bound for all peers; times are from the application's view. A peer's result is compared with an f64 computation, ours is by
`tconv-cl bench`; a wrong one is marked and does not count. A peer is "plain" where it reads and writes NC[D]HW, as tconv-cl does; else its
data are given, and stay, channels last. A peer that is not installed, or refuses a layer, is left out.
"""
import argparse
import csv
import importlib.util
import json
import math
import multiprocessing
import os
import statistics
import subprocess
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
WRONG = 1e-4  # largest |y - reference| / max |reference| that f32 rounding explains
LISTS = ('input', 'kernel', 'strides', 'dilations', 'pads_begin', 'pads_end', 'output_padding')


def read_suite(path):
    with open(path, newline='') as file:
        for row in csv.DictReader(file):
            for name in LISTS:
                row[name] = [int(v) for v in row[name].split('x')]
            for name in ('batch', 'in_channels', 'out_channels', 'groups'):
                row[name] = int(row[name])
            axes = zip(*(row[name] for name in LISTS))
            row['output'] = [(i - 1) * s - pb - pe + d * (k - 1) + 1 + op for i, k, s, d, pb, pe, op in axes]
            yield row


def lifted(layer):
    """A 1-D layer as the same 2-D one of height 1, which some peers are faster with."""
    first = {'input': 1, 'kernel': 1, 'strides': 1, 'dilations': 1, 'pads_begin': 0, 'pads_end': 0, 'output_padding': 0, 'output': 1}
    return dict(layer, **{name: [value] + layer[name] for name, value in first.items()})


def tensors(layer):
    """Data and filter (in, out of one group, kernel), small enough that no product dominates."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (layer['batch'], layer['in_channels'], *layer['input'])).astype(np.float32)
    w = rng.uniform(-1, 1, (layer['in_channels'], layer['out_channels'] // layer['groups'], *layer['kernel'])).astype(np.float32)
    return x, w


def reference(layer, x, w):
    """The operation by its definition, in f64: every tap's products are added where the tap lands."""
    g, n, ci, co = layer['groups'], layer['batch'], layer['in_channels'], layer['out_channels']
    axes = list(zip(*(layer[name] for name in LISTS)))
    full = [(i - 1) * s + d * (k - 1) + 1 + op for i, k, s, d, _, _, op in axes]
    y = np.zeros((co, n, *full))
    columns = np.ascontiguousarray(x.astype(np.float64).swapaxes(0, 1)).reshape(g, ci // g, -1)
    taps = w.astype(np.float64).reshape(g, ci // g, co // g, -1)
    for t, at in enumerate(np.ndindex(*layer['kernel'])):
        where = tuple(slice(k * d, k * d + (i - 1) * s + 1, s) for k, (i, _, s, d, *_) in zip(at, axes))
        y[(slice(None), slice(None), *where)] += (taps[..., t].swapaxes(1, 2) @ columns).reshape(co, n, *layer['input'])
    crop = tuple(slice(pb, pb + o) for pb, o in zip(layer['pads_begin'], layer['output']))
    return y[(slice(None), slice(None), *crop)].swapaxes(0, 1)


def to_last(a):
    return np.ascontiguousarray(np.moveaxis(a, 1, -1))


# Peers. Each yields (variant, plain, run, result): `run` is what is timed, `result` gives its last output as NC[D]HW.

def openvino(layer, x, w, threads):
    import openvino as ov
    from openvino import opset13 as op
    rank = x.ndim
    for plain in (True, False):
        given = x if plain else to_last(x)
        data = node = op.parameter(list(given.shape), np.float32)
        if not plain:
            node = op.transpose(node, [0, rank - 1, *range(1, rank - 1)])
        attributes = {name: layer[name] for name in ('strides', 'pads_begin', 'pads_end', 'dilations', 'output_padding')}
        if layer['groups'] == 1:
            node = op.convolution_backprop_data(node, op.constant(w), auto_pad='explicit', **attributes)
        else:
            grouped = w.reshape(layer['groups'], -1, *w.shape[1:])
            node = op.group_convolution_backprop_data(node, op.constant(grouped), auto_pad='explicit', **attributes)
        if not plain:
            node = op.transpose(node, [0, *range(2, rank), 1])
        compiled = ov.Core().compile_model(ov.Model([node], [data]), 'CPU', {
            'PERFORMANCE_HINT': 'LATENCY', 'INFERENCE_PRECISION_HINT': 'f32', 'INFERENCE_NUM_THREADS': threads})
        y = np.full(list(compiled.output().shape), np.nan, np.float32)
        request = compiled.create_infer_request()
        request.set_input_tensor(ov.Tensor(given, shared_memory=True))
        request.set_output_tensor(ov.Tensor(y, shared_memory=True))
        yield ('plain' if plain else 'channels last', plain, lambda r=request, a=given: r.infer(share_outputs=True),
               lambda y=y, plain=plain: y if plain else np.moveaxis(y, -1, 1))


def onnxruntime(layer, x, w, threads):
    import onnx
    import onnxruntime as ort
    helper, real = onnx.helper, onnx.TensorProto.FLOAT
    node = helper.make_node('ConvTranspose', ['x', 'w'], ['y'], strides=layer['strides'], pads=layer['pads_begin'] + layer['pads_end'],
                            dilations=layer['dilations'], group=layer['groups'], output_padding=layer['output_padding'])
    shape = (layer['batch'], layer['out_channels'], *layer['output'])
    graph = helper.make_graph([node], 'layer', [helper.make_tensor_value_info('x', real, x.shape)],
                              [helper.make_tensor_value_info('y', real, shape)], [onnx.numpy_helper.from_array(w, 'w')])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)])
    model.ir_version = 8
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=['CPUExecutionProvider'])
    y = ort.OrtValue.ortvalue_from_numpy(np.full(shape, np.nan, np.float32))
    binding = session.io_binding()
    binding.bind_ortvalue_input('x', ort.OrtValue.ortvalue_from_numpy(x))
    binding.bind_ortvalue_output('y', y)
    yield 'plain', True, lambda: session.run_with_iobinding(binding), y.numpy


def pytorch(layer, x, w, threads):
    import torch
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    rank = len(layer['input'])
    if rank > 3 or layer['pads_begin'] != layer['pads_end']:
        raise ValueError('it knows up to three axes and equal pads at both ends')
    convolve = getattr(torch.nn.functional, f'conv_transpose{rank}d')
    last = {}

    def run(data, weight):
        last['y'] = convolve(data, weight, None, layer['strides'], layer['pads_begin'], layer['output_padding'], layer['groups'],
                             layer['dilations'])

    data, weight = torch.from_numpy(x), torch.from_numpy(w)
    yield 'plain', True, lambda: run(data, weight), lambda: last['y'].numpy()
    if rank > 1:
        order = {'memory_format': torch.channels_last if rank == 2 else torch.channels_last_3d}
        data_last, weight_last = data.contiguous(**order), weight.contiguous(**order)
        yield 'channels last', False, lambda: run(data_last, weight_last), lambda: last['y'].contiguous().numpy()


PEERS = {'openvino': openvino, 'onnxruntime': onnxruntime, 'pytorch': pytorch}
MODULES = {'openvino': 'openvino', 'onnxruntime': 'onnxruntime', 'pytorch': 'torch'}


def milliseconds(run, seconds):
    """The median of as many runs as fit."""
    run()
    times, begin = [], time.perf_counter()
    while len(times) < 5 or (time.perf_counter() - begin < seconds and len(times) < 200):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def peer_process(name, pipe, threads, seconds):
    """A process of its own for each peer: thread pools and crashes stay apart. Answers 'prepare' and 'time'."""
    os.dup2(2, 1)
    variants = []
    for command, layer in iter(pipe.recv, None):
        if command == 'time':
            pipe.send([milliseconds(run, seconds) for _, _, run, _ in variants])
            continue
        x, w = tensors(layer)
        variants, answer = [], []
        try:
            forms = {'': layer, ' as 2-D': lifted(layer)} if x.ndim == 3 else {'': layer}
            for suffix, form in forms.items():
                xf, wf = (a.reshape(*a.shape[:2], *form[at]) for a, at in ((x, 'input'), (w, 'kernel')))
                for title, *rest in PEERS[name](form, xf, wf, threads):
                    rest[1]()
                    variants.append((title + suffix, *rest))
            wanted = reference(layer, x, w) if variants else None
            for title, plain, _, result in variants:
                error = float(np.abs(result().reshape(wanted.shape) - wanted).max() / max(np.abs(wanted).max(), 1e-30))
                answer.append({'peer': name, 'variant': title, 'plain': plain, 'wrong': not error < WRONG})
        except Exception as refusal:  # whatever the peer says, the layer goes on without it
            variants, answer = [], [{'peer': name, 'refused': str(refusal).strip().split('\n')[0][:200]}]
        pipe.send(answer)


def ours(tool, layer, device):
    """One run of the tool: its median time, verified by itself."""
    done = subprocess.run([tool, 'bench', '--ids', layer['id'], '--device', str(device), '--quiet', '--json', '-'],
                          capture_output=True, text=True, check=False)
    report = json.loads(done.stdout) if done.stdout else {'layers': [{'error': done.stderr}]}
    return report, report['layers'][0]


def ask(pipe, *request):
    """A worker's answer; None where it died."""
    try:
        pipe.send(request)
        return pipe.recv()
    except (EOFError, BrokenPipeError):
        return None


def compare(layer, workers, arguments):
    variants = []
    for name in list(workers):
        answer = ask(workers[name], 'prepare', layer)
        if answer is None:
            print(f'{name} crashed on {layer["id"]} and is left out from here on', file=sys.stderr)
            del workers[name]
            continue
        variants += [dict(v, times=[]) for v in answer]
    times, floors, report, result = [], [], None, None
    for _ in range(arguments.rounds):
        report, result = ours(arguments.tool, layer, arguments.device)
        if result.get('error'):
            break
        times.append(result['ms_median'])
        floors.append(result['floor_ms'])
        for name in workers:
            own = [v for v in variants if v['peer'] == name and 'refused' not in v]
            for variant, value in zip(own, ask(workers[name], 'time', None) or []):
                variant['times'].append(value)
    entry = {'id': layer['id'], 'layer': layer['layer'], 'error': result.get('error'), 'peers': variants}
    if not times:
        return entry
    entry.update(ms=statistics.median(times), floor_ms=min(floors), algorithm=result['algorithm'],
                 launch_us=report['launch_us'], gflops=result['gflops'], peak_gflops=report['peak_gflops'])
    for variant in variants:
        if variant['times']:
            variant['ms'] = statistics.median(variant.pop('times'))
    for key, counts in (('plain', lambda v: v['plain']), ('any', lambda v: True)):
        right = [v for v in variants if v.get('ms') and not v['wrong'] and counts(v)]
        if right:
            best = min(right, key=lambda v: v['ms'])
            # Where the best peer takes less than 0.1 ms, ours counts without the device's empty launch.
            net = entry['ms'] - (entry['launch_us'] / 1e3 if best['ms'] < 0.1 else 0)
            entry[key] = {'peer': best['peer'], 'variant': best['variant'], 'ms': best['ms'], 'ratio': best['ms'] / net}
    return entry


def mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float('nan')


def write_table(entries, file):
    print('| id | layer | algorithm | ms | % floor | best plain peer | ms | ratio | best peer in any layout | ms | ratio |', file=file)
    print('|---' * 11 + '|', file=file)
    for e in entries:
        if e['error']:
            print(f'| {e["id"]} | {e["layer"]} | {e["error"]} |' + ' |' * 8, file=file)
            continue
        cells = [e['id'], e['layer'], e['algorithm'], f'{e["ms"]:.4g}', f'{100 * e["floor_ms"] / e["ms"]:.0f}']
        for key in ('plain', 'any'):
            best = e.get(key)
            name = '-' if not best else best['peer'] + ('' if best['variant'] == 'plain' else ', ' + best['variant'])
            cells += [name, f'{best["ms"]:.4g}', f'{best["ratio"]:.2f}'] if best else ['-', '', '']
        print('| ' + ' | '.join(cells) + ' |', file=file)
    timed = [e for e in entries if not e['error']]
    print(f'\n{len(timed)} of {len(entries)} layers timed. Geometric means: floor/time {mean(e["floor_ms"] / e["ms"] for e in timed):.3f}, '
          f'best plain peer/ours {mean(e["plain"]["ratio"] for e in timed if "plain" in e):.3f}, '
          f'best peer in any layout/ours {mean(e["any"]["ratio"] for e in timed if "any" in e):.3f}.', file=file)


def draw(entries, path):
    import matplotlib
    matplotlib.use('agg')  # no screen; files of any kind
    from matplotlib import pyplot
    timed = [e for e in entries if 'plain' in e]
    figure, (above, below) = pyplot.subplots(2, 1, figsize=(16, 10), layout='constrained')
    at = range(len(timed))
    above.bar(at, [e['plain']['ratio'] for e in timed], color=['#2a9d8f' if e['plain']['ratio'] >= 1 else '#e76f51' for e in timed])
    above.plot(at, [e['any']['ratio'] for e in timed], 'k_', markersize=9, label='best peer in any layout')
    above.axhline(1, color='black', linewidth=0.8)
    above.set(yscale='log', ylabel='time of the best plain peer / ours', title='How much faster than the best peer')
    above.set_xticks(at, [e['id'] for e in timed], rotation=90)
    above.legend()
    below.bar(at, [100 * e['floor_ms'] / e['ms'] for e in timed], color='#457b9d', label='tconv-cl')
    below.plot(at, [100 * e['floor_ms'] / e['plain']['ms'] for e in timed], 'o', color='#e76f51', markersize=4, label='best plain peer')
    below.set(ylabel='% of the roofline', ylim=(0, 105), title='Share of the least time: multiply-adds at the peak, or bytes at the bandwidth')
    below.set_xticks(at, [e['id'] for e in timed], rotation=90)
    below.legend()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--tool', default='build/tconv-cl', help='the program to time')
    parser.add_argument('--suite', default=os.path.join(HERE, 'suite.csv'), help='layers; default: %(default)s')
    parser.add_argument('--ids', help='only these, separated by commas')
    parser.add_argument('--device', type=int, default=0, help='the number of ours, as `tconv-cl devices` lists them')
    parser.add_argument('--peers', default=','.join(PEERS), help='default: %(default)s')
    parser.add_argument('--threads', type=int, default=os.cpu_count(), help='of every peer; default: %(default)s')
    parser.add_argument('--rounds', type=int, default=3, help='interleaved rounds of each layer; default: %(default)s')
    parser.add_argument('--seconds', type=float, default=0.3, help='for each variant and round; default: %(default)s')
    parser.add_argument('--json', help='write everything there')
    parser.add_argument('--table', help='write the table there; default: stdout')
    parser.add_argument('--picture', help='draw ratios and shares of the roofline, .svg')
    arguments = parser.parse_args()
    layers = [l for l in read_suite(arguments.suite) if not arguments.ids or l['id'] in arguments.ids.split(',')]
    context, workers = multiprocessing.get_context('spawn'), {}
    for name in arguments.peers.split(','):
        if importlib.util.find_spec(MODULES[name]) is None:
            print(f'{name} is not installed and is left out: pip install -r {os.path.join(HERE, "peers.txt")}', file=sys.stderr)
            continue
        workers[name], other = context.Pipe()
        context.Process(target=peer_process, args=(name, other, arguments.threads, arguments.seconds), daemon=True).start()
        other.close()
    entries = []
    for number, layer in enumerate(layers):
        print(f'{number + 1}/{len(layers)} {layer["id"]} {layer["layer"]}', file=sys.stderr)
        if 4 * layer['batch'] * layer['out_channels'] * math.prod(layer['output']) > 4e9:
            entries.append({'id': layer['id'], 'layer': layer['layer'], 'error': 'left out: an output beyond 4 GB', 'peers': []})
            continue
        entries.append(compare(layer, workers, arguments))
    if arguments.json:
        with open(arguments.json, 'w') as file:
            json.dump(entries, file, indent=1)
    if arguments.table:
        with open(arguments.table, 'w') as file:
            write_table(entries, file)
    else:
        write_table(entries, sys.stdout)
    if arguments.picture:
        draw(entries, arguments.picture)


if __name__ == '__main__':
    main()
