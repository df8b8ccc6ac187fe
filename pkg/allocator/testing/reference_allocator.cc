// SPDX-License-Identifier: Apache-2.0
#include "pkg/allocator/testing/reference_allocator.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

namespace resmgr::test {

namespace {

using Ids = std::vector<int>;
using Field = std::function<int(const Cpu&)>;

int NodeOf(const Cpu& cpu) {
  return cpu.numa;
}
int PackageOf(const Cpu& cpu) {
  return cpu.package;
}
int CoreOf(const Cpu& cpu) {
  return cpu.core;
}
// CPUs without L3 are grouped by package, under separate numbers.
int UncoreOf(const Cpu& cpu) {
  return cpu.l3 >= 0 ? cpu.l3 : 100'000 + cpu.package;
}

class Reference {
 public:
  Reference(const Machine& machine, const CpuSet& free, int count) : needed(count) {
    std::set<int> nodes;
    std::set<int> packages;
    for (const Cpu& cpu : machine.cpus()) {
      if (!cpu.online) continue;
      cpus.push_back(cpu);
      if (cpu.numa >= 0) nodes.insert(cpu.numa);
      packages.insert(cpu.package);
      if (free.Contains(cpu.id)) left.insert(cpu.id);
    }
    nodes_first = packages.size() >= nodes.size();
  }

  // Free CPUs, or all CPUs, with this value of the field.
  Ids With(const Field& field, int value, bool only_free) const {
    Ids ids;
    for (const Cpu& cpu : cpus) {
      if (field(cpu) == value && (!only_free || left.count(cpu.id) > 0)) ids.push_back(cpu.id);
    }
    return ids;
  }
  const Cpu& Find(int id) const {
    return *std::find_if(cpus.begin(), cpus.end(), [id](const Cpu& cpu) { return cpu.id == id; });
  }
  // The values of a field among some CPUs, those with the fewest free CPUs first.
  Ids Sorted(const Ids& among, const Field& field) const {
    std::set<int> values;
    for (const int id : among)
      values.insert(field(Find(id)));
    Ids sorted(values.begin(), values.end());
    std::stable_sort(sorted.begin(), sorted.end(), [&](int a, int b) {
      return With(field, a, true).size() < With(field, b, true).size();
    });
    return sorted;
  }
  Ids Free() const { return {left.begin(), left.end()}; }
  // The inner field's values, grouped by outer element.
  Ids Nested(const Ids& outers, const Field& outer, const Field& inner) const {
    Ids all;
    for (const int value : outers) {
      for (const int found : Sorted(With(outer, value, true), inner)) {
        if (std::find(all.begin(), all.end(), found) == all.end()) all.push_back(found);
      }
    }
    return all;
  }
  Ids Nodes() const {
    if (nodes_first) return Sorted(Free(), NodeOf);
    return Nested(Sorted(Free(), PackageOf), PackageOf, NodeOf);
  }
  Ids Packages() const {
    if (!nodes_first) return Sorted(Free(), PackageOf);
    return Nested(Sorted(Free(), NodeOf), NodeOf, PackageOf);
  }
  Ids Cores() const {
    return nodes_first ? Nested(Packages(), PackageOf, CoreOf) : Nested(Nodes(), NodeOf, CoreOf);
  }

  bool done() const { return needed == 0; }
  void Take(const Ids& ids) {
    for (const int id : ids) {
      left.erase(id);
      taken.Add(id);
      --needed;
    }
  }
  void TakeWhole(const Ids& order, const Field& field) {
    for (const int value : order) {
      const Ids all = With(field, value, false);
      if (all == With(field, value, true) && static_cast<int>(all.size()) <= needed) Take(all);
    }
  }
  void TakeOneByOne(const Ids& order, const Field& field) {
    for (const int value : order) {
      for (const int id : With(field, value, true)) {
        if (done()) return;
        Take({id});
      }
    }
  }
  // Takes them from the first core that is large enough, else from the largest core of the first
  // place.
  void TakeSingles() {
    while (!done()) {
      const Ids order = Cores();
      const auto free = [this](int core) {
        return static_cast<int>(With(CoreOf, core, true).size());
      };
      auto chosen =
          std::find_if(order.begin(), order.end(), [&](int core) { return free(core) >= needed; });
      if (chosen == order.end()) {
        const auto place = [this](int core) {
          const Cpu& cpu = Find(With(CoreOf, core, true).front());
          return std::make_pair(cpu.package, cpu.numa);
        };
        chosen = order.begin();
        for (auto core = order.begin(); core != order.end(); ++core) {
          if (place(*core) == place(order.front()) && free(*core) > free(*chosen)) chosen = core;
        }
      }
      TakeOneByOne({*chosen}, CoreOf);
    }
  }
  void TakeUncores() {
    Ids order;
    for (const int node : Nodes()) {
      for (const int uncore : Sorted(With(NodeOf, node, true), UncoreOf))
        order.push_back(uncore);
    }
    TakeWhole(order, UncoreOf);
    for (const int uncore : order) {
      if (done()) return;
      std::set<int> cores;
      for (const int id : With(UncoreOf, uncore, true))
        cores.insert(CoreOf(Find(id)));
      Ids part;
      size_t idle_size = 0;
      bool smt = false;
      for (const int core : cores) {
        if (idle_size >= static_cast<size_t>(needed)) break;
        const size_t threads = With(CoreOf, core, false).size();
        idle_size += threads;
        smt = smt || threads > 1;
        for (const int id : With(CoreOf, core, true))
          part.push_back(id);
      }
      std::sort(part.begin(), part.end());
      if (smt && needed % 2 == 1 && static_cast<int>(part.size()) > needed) part.pop_back();
      if (static_cast<int>(part.size()) == needed) Take(part);
    }
  }

  std::vector<Cpu> cpus;
  std::set<int> left;
  bool nodes_first = false;
  int needed;
  CpuSet taken;
};

double Round3(double value) {
  return std::round(value * 1000) / 1000;
}

double Deviation(const std::map<int, int>& free) {
  double sum = 0;
  for (const auto& [node, cpus] : free)
    sum += cpus;
  const double mean = Round3(sum / static_cast<double>(free.size()));
  double squares = 0;
  for (const auto& [node, cpus] : free)
    squares += (cpus - mean) * (cpus - mean);
  return Round3(std::sqrt(squares / static_cast<double>(free.size())));
}

// All subsets of a size, in lexicographic order of positions.
std::vector<Ids> Subsets(const Ids& of, size_t size) {
  std::vector<Ids> all;
  std::vector<bool> mask(of.size(), false);
  std::fill(mask.begin(), mask.begin() + static_cast<std::ptrdiff_t>(size), true);
  do {
    Ids subset;
    for (size_t i = 0; i < of.size(); ++i) {
      if (mask[i]) subset.push_back(of[i]);
    }
    all.push_back(subset);
  } while (std::prev_permutation(mask.begin(), mask.end()));
  return all;
}

struct Best {
  double deviation = 1e9;
  Ids nodes;
  int each = 0;
  Ids takers;
};

void TryNodes(const std::map<int, int>& free, const Ids& nodes, int count, int group, Best& best) {
  int whole_groups = 0;
  for (const int node : nodes)
    whole_groups += free.at(node) / group;
  if (whole_groups * group < count) return;
  const auto size = static_cast<int>(nodes.size());
  const int each = count / size / group * group;
  std::map<int, int> after = free;
  for (const int node : nodes) {
    if (free.at(node) < each) return;
    after[node] -= each;
  }
  const int remainder = count - each * size;
  if (remainder == 0) {
    if (Deviation(after) < best.deviation) best = {Deviation(after), nodes, each, {}};
    return;
  }
  Ids candidates;
  for (const int node : nodes) {
    if (after[node] >= group) candidates.push_back(node);
  }
  for (size_t pick = candidates.size(); pick > 0; --pick) {
    for (const Ids& takers : Subsets(candidates, pick)) {
      std::map<int, int> last = after;
      int missing = remainder;
      for (bool progress = true; progress && missing > 0;) {
        progress = false;
        for (const int node : takers) {
          if (missing == 0 || last[node] < group) continue;
          last[node] -= group;
          missing -= group;
          progress = true;
        }
      }
      if (missing == 0 && Deviation(last) < best.deviation) {
        best = {Deviation(last), nodes, each, takers};
      }
    }
  }
}

}  // namespace

CpuSet ReferencePacked(const Machine& machine, const CpuSet& free, int count, bool by_uncore,
                       bool spread) {
  Reference reference(machine, free, count);
  if (reference.nodes_first) {
    reference.TakeWhole(reference.Nodes(), NodeOf);
    reference.TakeWhole(reference.Packages(), PackageOf);
  } else {
    reference.TakeWhole(reference.Packages(), PackageOf);
    reference.TakeWhole(reference.Nodes(), NodeOf);
  }
  if (by_uncore) reference.TakeUncores();
  if (spread) {
    reference.TakeOneByOne(reference.Packages(), PackageOf);
  } else {
    reference.TakeWhole(reference.Cores(), CoreOf);
    reference.TakeSingles();
  }
  return reference.taken;
}

CpuSet ReferenceDistributed(const Machine& machine, const CpuSet& free, int count, int group) {
  const Reference reference(machine, free, count);
  std::map<int, int> free_by_node;
  const Ids nodes = reference.Nodes();
  for (const int node : nodes)
    free_by_node[node] = static_cast<int>(reference.With(NodeOf, node, true).size());
  Best best;
  for (size_t size = 1; count > 0 && count % group == 0 && size <= nodes.size() &&
                        static_cast<int>(size) <= count / group && best.nodes.empty();
       ++size) {
    for (const Ids& subset : Subsets(nodes, size))
      TryNodes(free_by_node, subset, count, group, best);
  }
  if (best.nodes.empty()) return ReferencePacked(machine, free, count, false, false);
  CpuSet taken;
  const auto take = [&](int node, int cpus) {
    CpuSet here;
    for (const int id : reference.With(NodeOf, node, true)) {
      if (!taken.Contains(id)) here.Add(id);
    }
    if (here.size() >= cpus) taken |= ReferencePacked(machine, here, cpus, false, false);
  };
  for (const int node : best.nodes)
    take(node, best.each);
  while (taken.size() < count) {
    for (const int node : best.takers) {
      if (taken.size() < count) take(node, group);
    }
  }
  return taken;
}

CpuSet ReferenceInFewestPackages(const Machine& machine, const CpuSet& free, int count) {
  const Reference reference(machine, free, count);
  std::vector<std::pair<int, int>> by_size;  // free CPUs, package
  for (const int package : reference.Packages()) {
    by_size.emplace_back(static_cast<int>(reference.With(PackageOf, package, true).size()),
                         package);
  }
  std::sort(by_size.begin(), by_size.end());
  CpuSet chosen;
  const auto add = [&](int package) {
    for (const int id : reference.With(PackageOf, package, true))
      chosen.Add(id);
  };
  for (const auto& [size, package] : by_size) {
    if (size < count) continue;
    add(package);
    return chosen;
  }
  std::sort(by_size.begin(), by_size.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  for (const auto& [size, package] : by_size) {
    if (chosen.size() < count) add(package);
  }
  return chosen;
}

}  // namespace resmgr::test
