// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/pool_tree.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace resmgr {

// A part of the machine that may become a pool.
struct PoolTree::Group {
  CpuSet cpus;
  PoolLevel level = PoolLevel::kSystem;
  std::string name;
};

// A group as a node of the tree that is being built.
struct PoolTree::Node {
  Group group;
  std::vector<size_t> children;
};

std::string_view ToString(PoolLevel level) {
  switch (level) {
    case PoolLevel::kSystem:
      return "system";
    case PoolLevel::kPackage:
      return "package";
    case PoolLevel::kDie:
      return "die";
    case PoolLevel::kNuma:
      return "numa";
    case PoolLevel::kL3:
      return "l3";
  }
  return "";
}

namespace {

template <typename Group>
std::vector<Group> GroupsOf(const Machine& machine) {
  std::vector<Group> groups;
  for (size_t i = 0; i < machine.packages().size(); ++i)
    groups.push_back({machine.packages()[i], PoolLevel::kPackage, fmt::format("socket #{}", i)});
  std::vector<int> dies_in(machine.packages().size());
  for (size_t i = 0; i < machine.dies().size(); ++i) {
    const CpuSet& die = machine.dies()[i];
    if (die.empty()) continue;
    const int package = machine.FindCpu(die.First())->package;
    const int in_package = dies_in[IndexOf(package)]++;
    groups.push_back({die, PoolLevel::kDie, fmt::format("die #{}/{}", package, in_package)});
  }
  for (const NumaNode& node : machine.nodes()) {
    if (node.memory.value == 0 || !node.allowed) continue;
    groups.push_back({node.cpus, PoolLevel::kNuma, fmt::format("NUMA node #{}", node.id)});
  }
  for (size_t i = 0; i < machine.l3_groups().size(); ++i)
    groups.push_back({machine.l3_groups()[i], PoolLevel::kL3, fmt::format("L3 cache #{}", i)});
  std::erase_if(groups, [](const Group& group) { return group.cpus.empty(); });
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    if (a.cpus.size() != b.cpus.size()) return a.cpus.size() > b.cpus.size();
    if (a.level != b.level) return a.level < b.level;
    return a.cpus.First() < b.cpus.First();
  });
  return groups;
}

// The number of parts of this kind inside the pool, also those that do not become pools: a part
// that is alone does not divide the pool.
int PartsInside(const Machine& machine, PoolLevel level, const CpuSet& cpus) {
  const auto count = [&cpus](const std::vector<CpuSet>& parts) {
    return static_cast<int>(std::count_if(parts.begin(), parts.end(), [&cpus](const CpuSet& part) {
      return !part.empty() && part.IsSubsetOf(cpus);
    }));
  };
  switch (level) {
    case PoolLevel::kSystem:
      return 1;
    case PoolLevel::kPackage:
      return count(machine.packages());
    case PoolLevel::kDie:
      return count(machine.dies());
    case PoolLevel::kNuma:
      return static_cast<int>(std::count_if(
          machine.nodes().begin(), machine.nodes().end(),
          [&](const NumaNode& node) { return !node.cpus.empty() && node.cpus.IsSubsetOf(cpus); }));
    case PoolLevel::kL3:
      return count(machine.l3_groups());
  }
  return 0;
}

}  // namespace

PoolTree::PoolTree(const Machine& machine, const CpuSet& available, const CpuSet& reserved) {
  std::vector<Node> nodes;
  nodes.push_back({{machine.online(), PoolLevel::kSystem, "root"}, {}});
  for (Group& group : GroupsOf<Group>(machine)) {
    // A group with all CPUs of the machine is the root itself.
    if (group.cpus == machine.online()) {
      if (nodes[0].group.level == PoolLevel::kSystem) nodes[0].group = std::move(group);
      continue;
    }
    size_t around = 0;
    bool crosses = false;
    for (bool deeper = true; deeper && !crosses;) {
      deeper = false;
      for (const size_t child : nodes[around].children) {
        const CpuSet& cpus = nodes[child].group.cpus;
        if (!cpus.Intersects(group.cpus)) continue;
        deeper = group.cpus.IsSubsetOf(cpus);
        crosses = !deeper;
        if (deeper) around = child;
        break;
      }
    }
    if (crosses || nodes[around].group.cpus == group.cpus) continue;
    if (PartsInside(machine, group.level, nodes[around].group.cpus) < 2) continue;
    nodes[around].children.push_back(nodes.size());
    nodes.push_back({std::move(group), {}});
  }
  std::vector<int> roots;
  AddPools(nodes, 0, 0, roots);
  for (Pool& pool : pools_) {
    pool.cpus = extents_[IndexOf(pool.id)] & available;
    pool.reserved = pool.cpus & reserved;
    pool.isolated = (pool.cpus & machine.isolated()) - reserved;
    pool.sharable = pool.cpus - machine.isolated() - reserved;
    pool.direct = pool.sharable;
    for (const int child : pool.children)
      pool.direct -= extents_[IndexOf(child)];
  }
  AddMemory(machine);
}

void PoolTree::AddPools(std::vector<Node>& nodes, size_t node, int depth,
                        std::vector<int>& siblings) {
  std::vector<size_t>& below = nodes[node].children;
  std::sort(below.begin(), below.end(), [&nodes](size_t a, size_t b) {
    return nodes[a].group.cpus.First() < nodes[b].group.cpus.First();
  });
  Pool pool;
  for (const size_t child : below)
    AddPools(nodes, child, depth + 1, pool.children);
  pool.id = static_cast<int>(pools_.size());
  pool.depth = depth;
  pool.level = nodes[node].group.level;
  pool.name = nodes[node].group.name;
  for (const int child : pool.children)
    pools_[IndexOf(child)].parent = pool.id;
  max_depth_ = std::max(max_depth_, depth);
  siblings.push_back(pool.id);
  extents_.push_back(nodes[node].group.cpus);
  pools_.push_back(std::move(pool));
}

void PoolTree::AddHugePageSizes(const Machine& machine) {
  for (const NumaNode& node : machine.nodes()) {
    if (!node.allowed) continue;
    for (const HugePages& pages : node.huge_pages) {
      if (pages.count > 0 && !IndexOfPages(pages.size)) huge_page_sizes_.push_back(pages.size);
    }
  }
  std::ranges::sort(huge_page_sizes_);
  for (Pool& pool : pools_)
    pool.huge_capacity.resize(huge_page_sizes_.size());
}

void PoolTree::AddMemory(const Machine& machine) {
  AddHugePageSizes(machine);
  owners_.assign(static_cast<size_t>(machine.node_ids().Last()) + 1, -1);
  // Nodes with CPUs come first; the others are then added where the nearest of these is.
  for (const NumaNode& node : machine.nodes()) {
    if (!node.cpus.empty()) AddMemoryNode(node, SmallestWith(node.cpus));
  }
  std::vector<int64_t> attached(machine.nodes().size());
  for (const NumaNode& node : machine.nodes()) {
    if (!node.cpus.empty()) continue;
    const size_t column = IndexOf(static_cast<int>(&node - machine.nodes().data()));
    std::pair<int, int64_t> best = {std::numeric_limits<int>::max(), 0};
    size_t nearest = machine.nodes().size();
    for (size_t i = 0; i < machine.nodes().size(); ++i) {
      const NumaNode& home = machine.nodes()[i];
      if (home.cpus.empty() || home.memory.value == 0) continue;
      if (!node.near.empty() && !node.near.Intersects(home.cpus)) continue;
      const std::pair<int, int64_t> rank = {home.distances[column], attached[i]};
      if (nearest != machine.nodes().size() && rank >= best) continue;
      best = rank;
      nearest = i;
    }
    if (nearest == machine.nodes().size()) {
      AddMemoryNode(node, SmallestWith(node.near));
      continue;
    }
    attached[nearest] += node.memory.value;
    AddMemoryNode(node, OwnerOf(machine.nodes()[nearest].id));
  }
  for (auto pool = pools_.rbegin(); pool != pools_.rend(); ++pool) {
    const bool own = pool->memory_types != 0 || pool->parent < 0;
    pool->memory_pool = own ? pool->id : at(pool->parent).memory_pool;
  }
  FindNearMemory(machine);
}

void PoolTree::FindNearMemory(const Machine& machine) {
  for (Pool& pool : pools_) {
    pool.near_memory = pool.memory_types != 0;
    for (const NumaNode& node : machine.nodes()) {
      pool.near_memory |=
          node.memory.value > 0 && node.allowed && node.cpus.Intersects(extents_[IndexOf(pool.id)]);
    }
  }
}

void PoolTree::AddMemoryNode(const NumaNode& node, int pool) {
  owners_[IndexOf(node.id)] = pool;
  if (node.memory.value == 0 || !node.allowed) return;
  const MemoryTypes type = BitOf(node.type);
  for (int id = pool; id >= 0; id = at(id).parent) {
    Pool& holder = pools_[IndexOf(id)];
    holder.memory_types |= type;
    for (MemoryTypes types = 1; types < kMemoryTypeSets; ++types) {
      if ((types & type) == 0) continue;
      holder.nodes[types].Add(node.id);
      holder.capacity[types] = holder.capacity[types] + node.OrdinaryMemory();
      for (const HugePages& pages : node.huge_pages) {
        if (pages.count == 0) continue;
        Bytes& capacity = holder.huge_capacity[*IndexOfPages(pages.size)][types];
        capacity = capacity + pages.Total();
      }
    }
  }
}

int PoolTree::Find(std::string_view name) const {
  const auto found = std::find_if(pools_.begin(), pools_.end(),
                                  [name](const Pool& pool) { return pool.name == name; });
  return found == pools_.end() ? -1 : found->id;
}

int PoolTree::SmallestWith(const CpuSet& cpus) const {
  int smallest = root();
  for (bool deeper = !cpus.empty(); deeper;) {
    deeper = false;
    for (const int child : at(smallest).children) {
      if (!cpus.IsSubsetOf(extents_[IndexOf(child)])) continue;
      smallest = child;
      deeper = true;
      break;
    }
  }
  return smallest;
}

bool PoolTree::IsAncestorOrSelf(int ancestor, int pool) const {
  while (pool >= 0 && at(pool).depth > at(ancestor).depth)
    pool = at(pool).parent;
  return pool == ancestor;
}

int PoolTree::FirstBelow(int pool) const {
  while (!at(pool).children.empty())
    pool = at(pool).children.front();
  return pool;
}

int PoolTree::Distance(int a, int b) const {
  if (at(a).depth > at(b).depth) std::swap(a, b);
  return IsAncestorOrSelf(a, b) ? at(b).depth - at(a).depth : -1;
}

std::optional<size_t> PoolTree::IndexOfPages(Bytes size) const {
  const auto found = std::ranges::find(huge_page_sizes_, size);
  if (found == huge_page_sizes_.end()) return std::nullopt;
  return static_cast<size_t>(found - huge_page_sizes_.begin());
}

int PoolTree::OwnerOf(int node) const {
  return node < 0 || IndexOf(node) >= owners_.size() ? -1 : owners_[IndexOf(node)];
}

}  // namespace resmgr
