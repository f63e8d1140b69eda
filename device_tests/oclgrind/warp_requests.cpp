// SPDX-License-Identifier: Apache-2.0
// A plug-in for Oclgrind which counts what the memory of a GPU would be asked for. Work-items that
// are neighbours in a work-group form a warp; what they access with the same instruction, for the
// same time since the last barrier, is one request.
//
//   environment     meaning
//   WARP_LANES      work-items of a warp; default 32
//   WARP_REQUESTS   the file that lines are appended to; default: standard output
//
// A line for each kernel and instruction, with tabs between:
//
//   kernel; load or store; global or local; loop, where multiply-adds of a work-item came before
//   and after it, else once; requests; bytes of them that differ; sectors of 32 bytes that they
//   touch (global), or passes over the banks (local); the fewest possible; the most passes of a
//   request over the fewest possible; the instruction
//
// Local memory has 32 banks of 4 bytes. It serves a warp's accesses of up to 4 bytes at once, of 8
// in two parts, of 16 in four.
#include <oclgrind/Context.h>
#include <oclgrind/KernelInvocation.h>
#include <oclgrind/Memory.h>
#include <oclgrind/Plugin.h>
#include <oclgrind/WorkGroup.h>
#include <oclgrind/WorkItem.h>

#include <algorithm>
#include <array>
#include <fstream>

// All that is wanted of oclgrind/Kernel.h, which includes headers of LLVM.
namespace oclgrind
{
class Kernel
{
  public:
    const std::string &getName() const;
};
} // namespace oclgrind

using namespace oclgrind;

namespace
{
enum { SECTOR = 32, BANKS = 32, BANK = 4, AT_ONCE = BANKS * BANK };

struct Access {
    size_t lane, address, size;
};

struct Count {
    bool store, local, loop;
    size_t requests, bytes, touched, fewest;
    double worst;
};

// Accesses of a work-group since its last barrier: by warp, instruction and time.
using Key = std::tuple<size_t, const llvm::Instruction *, bool, bool, size_t>;

struct Item {
    std::map<const llvm::Instruction *, size_t> times;
    std::set<const llvm::Instruction *> before_product; // accesses since the last multiply-add
    bool product = false;
};

class WarpRequests : public Plugin
{
  public:
    explicit WarpRequests(const Context *context) : Plugin(context)
    {
        const char *lanes = getenv("WARP_LANES");
        if (lanes != nullptr && atoi(lanes) > 0) m_lanes = static_cast<size_t>(atoi(lanes));
    }

    bool isThreadSafe() const override
    {
        return false;
    }

    void instructionExecuted(const WorkItem *item, const llvm::Instruction *instruction,
                             const TypedValue &) override
    {
        if (!is_product(instruction)) return;
        Item &own = m_items[item];
        if (own.product) m_loop.insert(own.before_product.begin(), own.before_product.end());
        own.before_product.clear();
        own.product = true;
    }

    void memoryLoad(const Memory *memory, const WorkItem *item, size_t address,
                    size_t size) override
    {
        access(memory, item, address, size, false);
    }

    void memoryStore(const Memory *memory, const WorkItem *item, size_t address, size_t size,
                     const uint8_t *) override
    {
        access(memory, item, address, size, true);
    }

    void workGroupBarrier(const WorkGroup *, uint32_t) override
    {
        finish_requests();
    }

    void workGroupComplete(const WorkGroup *) override
    {
        finish_requests();
        m_items.clear();
    }

    void kernelEnd(const KernelInvocation *invocation) override
    {
        const char *path = getenv("WARP_REQUESTS");
        std::ofstream file;
        if (path != nullptr) file.open(path, std::ios::app);
        std::ostream &out = path != nullptr ? file : std::cout;
        for (const auto &pair : m_counts) {
            const Count &c = pair.second;
            const llvm::Instruction *instruction = pair.first.first;
            std::ostringstream text;
            dumpInstruction(text, instruction);
            out << invocation->getKernel()->getName() << (c.store ? "\tstore" : "\tload")
                << (c.local ? "\tlocal" : "\tglobal")
                << (m_loop.count(instruction) ? "\tloop\t" : "\tonce\t") << c.requests << '\t'
                << c.bytes << '\t' << c.touched << '\t' << c.fewest << '\t' << c.worst << '\t'
                << text.str() << '\n';
        }
        m_counts.clear();
        m_loop.clear();
        m_products.clear(); // another program may reuse the addresses
    }

  private:
    bool is_product(const llvm::Instruction *instruction)
    {
        const auto known = m_products.find(instruction);
        if (known != m_products.end()) return known->second;
        std::ostringstream text;
        dumpInstruction(text, instruction);
        return m_products[instruction] = text.str().find("@llvm.fmuladd.") != std::string::npos ||
                                         text.str().find("@_Z3fma") != std::string::npos;
    }

    void access(const Memory *memory, const WorkItem *item, size_t address, size_t size, bool store)
    {
        const unsigned space = memory->getAddressSpace();
        if (space == AddrSpacePrivate) return;
        const Size3 id = item->getLocalID(), group = item->getWorkGroup()->getGroupSize();
        const size_t number = (id.z * group.y + id.y) * group.x + id.x;
        const llvm::Instruction *instruction = item->getCurrentInstruction();
        Item &own = m_items[item];
        own.before_product.insert(instruction);
        m_requests[Key(number / m_lanes, instruction, store, space == AddrSpaceLocal,
                       own.times[instruction]++)]
            .push_back({number % m_lanes, address, size});
    }

    // Different blocks of `unit` bytes that accesses touch.
    static std::vector<size_t> blocks(const std::vector<Access> &accesses, size_t unit)
    {
        std::vector<size_t> all;
        for (const Access &a : accesses)
            for (size_t b = a.address / unit; b <= (a.address + a.size - 1) / unit; b++)
                all.push_back(b);
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        return all;
    }

    static size_t bytes_of(std::vector<Access> accesses)
    {
        std::sort(accesses.begin(), accesses.end(),
                  [](const Access &a, const Access &b) { return a.address < b.address; });
        size_t bytes = 0, end = 0;
        for (const Access &a : accesses) {
            const size_t begin = std::max(a.address, end);
            end = std::max(end, a.address + a.size);
            bytes += end - std::min(begin, end);
        }
        return bytes;
    }

    void finish_requests()
    {
        for (const auto &pair : m_requests) {
            const std::vector<Access> &accesses = pair.second;
            const bool store = std::get<2>(pair.first), local = std::get<3>(pair.first);
            Count &count = m_counts[{std::get<1>(pair.first), store}];
            const size_t bytes = bytes_of(accesses);
            size_t touched = 0, fewest = 0;
            if (local) {
                std::map<size_t, std::vector<Access>> parts;
                for (const Access &a : accesses)
                    parts[a.lane * std::max<size_t>(a.size, BANK) / AT_ONCE].push_back(a);
                for (const auto &part : parts) {
                    std::array<size_t, BANKS> words{};
                    for (const size_t word : blocks(part.second, BANK)) words[word % BANKS]++;
                    touched += *std::max_element(words.begin(), words.end());
                    fewest++;
                }
            } else {
                touched = blocks(accesses, SECTOR).size();
                fewest = (bytes + SECTOR - 1) / SECTOR;
            }
            count.store = store;
            count.local = local;
            count.requests++;
            count.bytes += bytes;
            count.touched += touched;
            count.fewest += fewest;
            count.worst =
                std::max(count.worst, static_cast<double>(touched) / static_cast<double>(fewest));
        }
        m_requests.clear();
        for (auto &pair : m_items) pair.second.times.clear();
    }

    size_t m_lanes = 32;
    std::map<Key, std::vector<Access>> m_requests;
    std::map<const WorkItem *, Item> m_items;
    std::map<std::pair<const llvm::Instruction *, bool>, Count> m_counts;
    std::set<const llvm::Instruction *> m_loop;
    std::map<const llvm::Instruction *, bool> m_products;
};
} // namespace

extern "C" __attribute__((visibility("default"))) void initializePlugins(Context *context)
{
    context->registerPlugin(new WarpRequests(context));
}

extern "C" __attribute__((visibility("default"))) void releasePlugins(Context *context)
{
    (void)context; // the plug-in must live until the program ends
}
