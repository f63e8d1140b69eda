#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the suite in several element types, one after the other in each round, and writes a table: milliseconds (least median of
all rounds) and the ratio to the first type. Every layer is verified by the tool in every round; layers that do not fit are
left out. Needs nothing but Python."""
import argparse
import json
import math
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--tool', default='build/tconv-cl')
    parser.add_argument('--types', default='f32,f16,bf16,i8')
    parser.add_argument('--rounds', type=int, default=2)
    parser.add_argument('--ids', help='only these layers, as for tconv-cl bench')
    parser.add_argument('--device', help='as for tconv-cl bench')
    parser.add_argument('--json', help='write the numbers to this file, too')
    arguments = parser.parse_args()
    types = arguments.types.split(',')
    best, names, order = {}, {}, []
    for number in range(arguments.rounds):
        for which in types:
            command = [arguments.tool, 'bench', '--quiet', '--no-ceilings', '--type', which, '--json', '-']
            for option in ('ids', 'device'):
                if getattr(arguments, option):
                    command += ['--' + option, getattr(arguments, option)]
            print(f'round {number + 1} of {arguments.rounds}, {which}', file=sys.stderr)
            for layer in json.loads(subprocess.run(command, stdout=subprocess.PIPE).stdout)['layers']:
                if layer['ms_median'] is None:
                    print(f'{layer["id"]} {which}: {layer["error"]}', file=sys.stderr)
                    continue
                key = (layer['id'], which)
                if layer['id'] not in names:
                    order.append(layer['id'])
                names[layer['id']] = layer['layer']
                if key not in best or layer['ms_median'] < best[key][0]:
                    best[key] = (layer['ms_median'], layer['algorithm'])
    print('| id | layer | ' + ' | '.join(f'{t} ms' for t in types) + ' | ' + ' | '.join(f'{t}/{types[0]}' for t in types[1:]) + ' |')
    print('|---' * (1 + 1 + 2 * len(types) - 1) + '|')
    ratios = {t: [] for t in types[1:]}
    for i in order:
        if any((i, t) not in best for t in types):
            continue
        first = best[i, types[0]][0]
        for t in types[1:]:
            ratios[t].append(best[i, t][0] / first)
        print(f'| {i} | {names[i]} | ' + ' | '.join(f'{best[i, t][0]:.3g}' for t in types) + ' | ' +
              ' | '.join(f'{best[i, t][0] / first:.2f}' for t in types[1:]) + ' |')
    print('| | geometric mean | ' + ' | '.join('' for t in types) + ' | ' +
          ' | '.join(f'{math.exp(sum(map(math.log, ratios[t])) / max(1, len(ratios[t]))):.2f}' for t in types[1:]) + ' |')
    if arguments.json:
        with open(arguments.json, 'w', encoding='utf-8') as file:
            json.dump({f'{i} {t}': {'ms': ms, 'algorithm': name} for (i, t), (ms, name) in best.items()}, file, indent=1)


if __name__ == '__main__':
    main()
