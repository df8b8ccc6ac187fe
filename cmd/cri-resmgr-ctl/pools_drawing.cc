// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/pools_drawing.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cmd/cri-resmgr-ctl/terminal_text.h"
#include "pkg/base/parse.h"
#include "pkg/base/terminal.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLongestList = 24;
constexpr size_t kLineWidth = 100;
constexpr size_t kNamedContainers = 12;
// Limits the recursion: if a bug of the daemon made a pool its own ancestor, the drawing must still
// end.
constexpr size_t kMaxDepth = 16;

std::string Text(const Json& pool, const char* key) {
  return pool.at(key).get<std::string>();
}

// The list, shortened if it is too long: "0-3,8,10,... (17)".
std::string CpuList(const std::string& list) {
  if (list.empty()) return "-";
  if (list.size() <= kLongestList) return list;
  const size_t end = list.rfind(',', kLongestList - 10);
  if (end == std::string::npos) return list;
  return fmt::format("{},... ({})", list.substr(0, end),
                     CpuSet::Parse(list).value_or(CpuSet()).size());
}

// The part of the shared CPUs that no container has requested. A balloon counts as large as it may
// become now.
std::string Free(const Json& pool) {
  const int64_t shared =
      int64_t{1000} * CpuSet::Parse(Text(pool, "shared")).value_or(CpuSet()).size();
  const auto free = pool.at("free").get<int64_t>();
  const int64_t room = free + pool.value("sharedRequest", int64_t{0});
  return fmt::format("{} of {}", CpusText(free), CpusText(std::max(shared, room)));
}

std::string Memory(const Json& pool) {
  const auto bytes = pool.at("memoryBytes").get<int64_t>();
  if (bytes == 0) return "-";
  return BytesOf(pool.at("memoryUsed").get<int64_t>(), bytes);
}

class Drawing {
 public:
  explicit Drawing(const Json& pools) {
    for (const Json& pool : pools)
      children_.emplace(Text(pool, "parent"), &pool);
    rows_ = {{"POOL", "CPUS", "SHARED", "FREE", "EXCLUSIVE", "MEMS", "MEMORY USED"}};
    names_ = {{}};
    AddBelow("", 0, "");
  }

  std::string Lines() const {
    std::string text;
    size_t row = 0;
    const std::string table = FormatTable(rows_);
    for (std::string_view line : Split(table, '\n')) {
      if (row == names_.size()) break;
      line = line.substr(0, line.find_last_not_of(' ') + 1);
      text += fmt::format("{}\n", line);
      for (const std::string& names : names_[row++])
        text += names + '\n';
    }
    return text;
  }

 private:
  void AddBelow(const std::string& parent, size_t depth, const std::string& mems_around) {
    if (depth > kMaxDepth) return;
    const auto [first, last] = children_.equal_range(parent);
    for (auto child = first; child != last; ++child) {
      const Json& pool = *child->second;
      const std::string mems = Text(pool, "mems");
      // A pool within a NUMA node has no memory of its own to show.
      const bool own_memory = depth == 0 || mems != mems_around;
      rows_.push_back(
          {std::string(2 * depth, ' ') + Printable(Text(pool, "name")), CpuList(Text(pool, "cpus")),
           CpuList(Text(pool, "shared")), Free(pool), CpuList(Text(pool, "exclusive")),
           own_memory ? (mems.empty() ? "-" : mems) : "", own_memory ? Memory(pool) : ""});
      names_.push_back(Containers(pool, 2 * depth + 2));
      if (pool.contains("overhead")) {
        names_.back().insert(names_.back().begin(), Overhead(pool.at("overhead"), 2 * depth + 2));
      }
      AddBelow(Text(pool, "name"), depth + 1, mems);
    }
  }

  static std::string Overhead(const Json& overhead, size_t indent) {
    return fmt::format("{}- pod overhead: {} CPUs, {}", std::string(indent, ' '),
                       CpusText(overhead.at("cpu").get<int64_t>()),
                       BytesText(overhead.at("memory").get<int64_t>()));
  }

  static std::vector<std::string> Containers(const Json& pool, size_t indent) {
    std::vector<std::string> lines;
    const Json& names = pool.at("containers");
    const auto add = [&lines, indent](const std::string& word, bool first) {
      if (!first && lines.back().size() + 2 + word.size() <= kLineWidth) {
        lines.back() += ", " + word;
        return;
      }
      if (!first) lines.back() += ',';
      lines.push_back(std::string(indent, ' ') + (first ? "- " : "  ") + word);
    };
    for (size_t i = 0; i < names.size() && i < kNamedContainers; ++i)
      add(Printable(names[i].get<std::string>()), i == 0);
    if (names.size() > kNamedContainers) {
      add(fmt::format("and {} more", names.size() - kNamedContainers), false);
    }
    return lines;
  }

  std::multimap<std::string, const Json*> children_;
  std::vector<TableRow> rows_;
  std::vector<std::vector<std::string>> names_;  // lines below each row
};

}  // namespace

std::string DrawPools(const Json& pools) {
  if (pools.empty()) return "the policy has no pools\n";
  return Drawing(pools).Lines();
}

}  // namespace resmgr
