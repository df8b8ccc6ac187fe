// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/hwloc_loader.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>

#include <hwloc.h>

#include "pkg/base/parse.h"
#include "pkg/topology/cpu_kinds.h"
#include "pkg/topology/kernel_lists.h"
#include "pkg/topology/run_in_child.h"
#include "pkg/topology/synthetic_description.h"

namespace resmgr {

namespace {

constexpr const char* kIsolatedInfo = "IsolatedCPUs";
constexpr size_t kMaxXmlBytes = 64 << 20;
// Limit of the characters of a version in a message.
constexpr size_t kMostVersion = 20;

struct TopologyDeleter {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyDeleter>;

struct BitmapDeleter {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

StatusOr<Topology> NewTopology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return Unavailable("hwloc cannot be initialized");
  Topology topology(raw);
  // Loads only what a Machine holds, and groups, to which hwloc attaches the NUMA nodes that are
  // parts of a package. The x86 component is off: it moves this thread to each CPU in turn to query
  // it, and adds nothing to what Linux reports.
  hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  for (const hwloc_obj_type_t type :
       {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_DIE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_CORE}) {
    hwloc_topology_set_type_filter(raw, type, HWLOC_TYPE_FILTER_KEEP_ALL);
  }
  hwloc_topology_set_flags(
      raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED | HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING);
  return topology;
}

std::string_view InfoOf(hwloc_obj_t object, const char* name) {
  const char* value = hwloc_obj_get_info_by_name(object, name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// Damaged files may yield nullptr or infinite bitmaps.
StatusOr<CpuSet> ToCpuSet(hwloc_const_bitmap_t bitmap, std::string_view what) {
  if (bitmap == nullptr) return InvalidArgument("{} are missing", what);
  const int last = hwloc_bitmap_last(bitmap);
  if (last > CpuSet::kMaxId || (last < 0 && hwloc_bitmap_iszero(bitmap) == 0)) {
    return InvalidArgument("{}: CPU ids from 0 to {} are supported, this machine has {}", what,
                           CpuSet::kMaxId, last < 0 ? "an endless set" : std::to_string(last));
  }
  CpuSet cpus;
  for (int id = hwloc_bitmap_first(bitmap); id >= 0; id = hwloc_bitmap_next(bitmap, id))
    cpus.Add(id);
  return cpus;
}

bool IsFromDaxDevice(hwloc_obj_t node) {
  return hwloc_obj_get_info_by_name(node, "DAXDevice") != nullptr;
}

// In MB/s, of the CPUs that reach the node fastest, by the firmware's table HMAT; 0 if it has none.
uint64_t BandwidthOf(hwloc_topology_t topology, hwloc_obj_t node) {
  hwloc_location fastest;
  hwloc_uint64_t rate = 0;
  return hwloc_memattr_get_best_initiator(topology, HWLOC_MEMATTR_ID_BANDWIDTH, node, 0, &fastest,
                                          &rate) == 0
             ? rate
             : 0;
}

// Whether special-purpose memory is HBM, and not CXL: by its bandwidth, or else by its size as
// cri-resource-manager's sysfs package does, where it is less than that of an ordinary node.
bool IsHighBandwidth(hwloc_topology_t topology, hwloc_obj_t special) {
  uint64_t nodes = 0, memory = 0, ordinary_rate = 0;
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
    if (IsFromDaxDevice(node)) continue;
    ++nodes;
    memory += node->attr->numanode.local_memory >> 20;
    ordinary_rate = std::max(ordinary_rate, BandwidthOf(topology, node));
  }
  const uint64_t rate = BandwidthOf(topology, special);
  if (rate > 0 && ordinary_rate > 0) return rate > ordinary_rate;
  return nodes > 0 && special->attr->numanode.local_memory >> 20 < memory / nodes;
}

MemoryType TypeOf(hwloc_topology_t topology, hwloc_obj_t node) {
  const std::string subtype = node->subtype == nullptr ? "" : ToLower(node->subtype);
  if (subtype == "hbm" || subtype == "mcdram") return MemoryType::kHbm;
  if (subtype == "spm" && IsHighBandwidth(topology, node)) return MemoryType::kHbm;
  if (subtype == "nvm" || subtype == "pmem" || subtype == "spm" || IsFromDaxDevice(node)) {
    return MemoryType::kPmem;
  }
  return MemoryType::kDram;
}

// All NUMA nodes, in the order in which a CPU with several local nodes prefers them: ordinary
// memory before special memory, then the node that is local to the fewest CPUs (the kernel's
// choice), then the lowest number.
std::vector<hwloc_obj_t> NodesByPreference(hwloc_topology_t topology) {
  // Each node's rank is found once: that of special memory looks at all nodes.
  std::vector<std::tuple<bool, int, unsigned, hwloc_obj_t>> ranked;
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    ranked.emplace_back(TypeOf(topology, node) != MemoryType::kDram,
                        hwloc_bitmap_weight(node->cpuset), node->os_index, node);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<hwloc_obj_t> nodes;
  for (const auto& entry : ranked)
    nodes.push_back(std::get<hwloc_obj_t>(entry));
  return nodes;
}

int LocalNode(const std::vector<hwloc_obj_t>& nodes_by_preference, hwloc_obj_t pu) {
  for (const hwloc_obj_t node : nodes_by_preference) {
    if (hwloc_bitmap_isset(pu->nodeset, node->os_index) != 0) {
      return static_cast<int>(node->os_index);
    }
  }
  return -1;
}

int AncestorIndex(hwloc_topology_t topology, hwloc_obj_t pu, hwloc_obj_type_t type) {
  const hwloc_obj_t ancestor = hwloc_get_ancestor_obj_by_type(topology, type, pu);
  return ancestor == nullptr ? -1 : static_cast<int>(ancestor->logical_index);
}

Status ReadCpus(hwloc_topology_t topology, Machine::Parts& parts) {
  const hwloc_obj_t root = hwloc_get_root_obj(topology);
  RESMGR_ASSIGN_OR_RETURN(const CpuSet complete, ToCpuSet(root->complete_cpuset, "CPUs"));
  RESMGR_ASSIGN_OR_RETURN(parts.allowed,
                          ToCpuSet(hwloc_topology_get_allowed_cpuset(topology), "allowed CPUs"));

  const std::vector<hwloc_obj_t> nodes = NodesByPreference(topology);
  std::vector<Cpu> by_id(CpuSet::kBits);
  CpuSet known = complete;
  hwloc_obj_t pu = nullptr;
  while ((pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)) != nullptr) {
    if (pu->os_index > CpuSet::kMaxId) {
      return InvalidArgument("CPU {}: ids from 0 to {} are supported", pu->os_index,
                             CpuSet::kMaxId);
    }
    Cpu& cpu = by_id[pu->os_index];
    cpu.online = true;
    cpu.core = AncestorIndex(topology, pu, HWLOC_OBJ_CORE);
    cpu.l2 = AncestorIndex(topology, pu, HWLOC_OBJ_L2CACHE);
    cpu.l3 = AncestorIndex(topology, pu, HWLOC_OBJ_L3CACHE);
    cpu.die = AncestorIndex(topology, pu, HWLOC_OBJ_DIE);
    cpu.package = AncestorIndex(topology, pu, HWLOC_OBJ_PACKAGE);
    cpu.numa = LocalNode(nodes, pu);
    known.Add(static_cast<int>(pu->os_index));
  }
  for (const int id : known) {
    Cpu& cpu = by_id[static_cast<size_t>(id)];
    cpu.id = id;
    parts.cpus.push_back(cpu);
  }
  return OkStatus();
}

// All page sizes except the smallest, which is that of ordinary memory. A damaged file may list
// more pages than fit into the memory, so the counts are limited.
std::vector<HugePages> ReadHugePages(hwloc_obj_t node, Bytes memory) {
  std::map<uint64_t, uint64_t> counts;
  for (unsigned i = 0; i < node->attr->numanode.page_types_len; ++i) {
    const auto& type = node->attr->numanode.page_types[i];
    if (type.size > 0) counts[type.size] += type.count;
  }
  std::vector<HugePages> pages;
  if (counts.empty()) return pages;
  auto left = static_cast<uint64_t>(memory.value);
  for (auto next = std::next(counts.begin()); next != counts.end(); ++next) {
    const auto [size, told] = *next;
    const uint64_t count = std::min(told, left / size);
    left -= size * count;
    if (count == 0) continue;
    pages.push_back({Bytes{static_cast<int64_t>(size)}, static_cast<int64_t>(count)});
  }
  return pages;
}

Status ReadNodes(hwloc_topology_t topology, Machine::Parts& parts) {
  const hwloc_const_bitmap_t allowed = hwloc_topology_get_allowed_nodeset(topology);
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, object)) != nullptr) {
    if (object->os_index > NodeSet::kMaxId) {
      return InvalidArgument("NUMA node {}: ids from 0 to {} are supported", object->os_index,
                             NodeSet::kMaxId);
    }
    NumaNode node;
    node.id = static_cast<int>(object->os_index);
    constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
    node.memory.value =
        static_cast<int64_t>(std::min<uint64_t>(object->attr->numanode.local_memory, kMost));
    node.huge_pages = ReadHugePages(object, node.memory);
    node.type = TypeOf(topology, object);
    node.allowed = allowed == nullptr || hwloc_bitmap_isset(allowed, object->os_index) != 0;
    if (object->cpuset != nullptr) {
      RESMGR_ASSIGN_OR_RETURN(node.near, ToCpuSet(object->cpuset, "CPUs of a NUMA node"));
    }
    parts.nodes.push_back(std::move(node));
  }
  std::sort(parts.nodes.begin(), parts.nodes.end(),
            [](const NumaNode& a, const NumaNode& b) { return a.id < b.id; });
  return OkStatus();
}

// The index of a node in `nodes`, whose order is not hwloc's.
std::optional<size_t> PlaceOf(const std::vector<NumaNode>& nodes, hwloc_obj_t object) {
  if (object == nullptr) return std::nullopt;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].id == static_cast<int>(object->os_index)) return i;
  }
  return std::nullopt;
}

// Reads the distances if hwloc has them for every node; otherwise Machine sets the kernel's
// defaults.
void ReadDistances(hwloc_topology_t topology, std::vector<NumaNode>& nodes) {
  hwloc_distances_s* matrix = nullptr;
  unsigned count = 1;
  if (hwloc_distances_get_by_name(topology, "NUMALatency", &count, &matrix, 0) != 0) return;
  if (count == 0 || matrix == nullptr) return;
  const size_t size = matrix->nbobjs;
  std::vector<size_t> places;
  for (size_t i = 0; i < size; ++i) {
    if (const std::optional<size_t> place = PlaceOf(nodes, matrix->objs[i])) {
      places.push_back(*place);
    }
  }
  if (places.size() == nodes.size() && size == nodes.size()) {
    for (NumaNode& node : nodes)
      node.distances.assign(size, 0);
    for (size_t from = 0; from < size; ++from) {
      for (size_t to = 0; to < size; ++to) {
        const auto value = std::min<hwloc_uint64_t>(matrix->values[from * size + to], 1'000'000);
        nodes[places[from]].distances[places[to]] = static_cast<int>(value);
      }
    }
  }
  hwloc_distances_release(topology, matrix);
}

// Limits what a damaged file may say to values that can be compared by percentages.
int64_t RateOf(std::string_view value) {
  constexpr int64_t kMost = 1'000'000'000;
  return std::clamp<int64_t>(ParseInt(value).value_or(0), 0, kMost);
}

void ReadInfo(std::string_view name, std::string_view value, CpuKind& kind) {
  if (name == "CoreType") kind.core_type = value;
  if (name == "FrequencyBaseMHz") kind.base_mhz = RateOf(value);
  if (name == "FrequencyMaxMHz") kind.max_mhz = RateOf(value);
  if (name == "LinuxCapacity") kind.capacity = RateOf(value);
}

StatusOr<std::vector<CpuKind>> ReadKinds(hwloc_topology_t topology) {
  std::vector<CpuKind> kinds;
  const int count = hwloc_cpukinds_get_nr(topology, 0);
  const Bitmap bitmap(hwloc_bitmap_alloc());
  for (int i = 0; i < count; ++i) {
    CpuKind kind;
    unsigned info_count = 0;
    hwloc_info_s* infos = nullptr;
    if (hwloc_cpukinds_get_info(topology, static_cast<unsigned>(i), bitmap.get(), &kind.efficiency,
                                &info_count, &infos, 0) != 0) {
      continue;
    }
    RESMGR_ASSIGN_OR_RETURN(kind.cpus, ToCpuSet(bitmap.get(), "CPU kind"));
    for (unsigned info = 0; info < info_count; ++info) {
      ReadInfo(infos[info].name, infos[info].value, kind);
    }
    kinds.push_back(kind);
  }
  return kinds;
}

Status ApplyIsolated(std::string_view list, std::vector<Cpu>& cpus) {
  const StatusOr<CpuSet> isolated = CpuSet::Parse(list);
  if (!isolated.ok()) return Annotate(isolated.status(), "isolated CPUs");
  for (Cpu& cpu : cpus)
    cpu.isolated = isolated->Contains(cpu.id);
  return OkStatus();
}

StatusOr<Machine::Parts> ReadLoaded(hwloc_topology_t topology) {
  Machine::Parts parts;
  RESMGR_RETURN_IF_ERROR(ReadCpus(topology, parts));
  RESMGR_RETURN_IF_ERROR(ReadNodes(topology, parts));
  ReadDistances(topology, parts.nodes);
  RESMGR_ASSIGN_OR_RETURN(const std::vector<CpuKind> kinds, ReadKinds(topology));
  ApplyKinds(kinds, parts.cpus);
  ApplySpeeds(kinds, parts.cpus);
  RESMGR_RETURN_IF_ERROR(
      ApplyIsolated(InfoOf(hwloc_get_root_obj(topology), kIsolatedInfo), parts.cpus));
  return parts;
}

// Whether the topology is from sysfs: if environment variables have redirected a live load to an
// XML file, this kernel says nothing about that machine.
bool IsFromSysfs(hwloc_topology_t topology) {
  return hwloc_topology_is_thissystem(topology) != 0 || std::getenv("HWLOC_FSROOT") != nullptr;
}

// The text between `before` and `after` that comes behind `from`; empty without `from` or `before`.
std::string_view Between(std::string_view text, std::string_view from, std::string_view before,
                         std::string_view after) {
  const size_t start = text.find(from);
  if (start == std::string_view::npos) return {};
  const size_t begin = text.find(before, start + from.size());
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin + before.size());
  return text.substr(0, text.find(after));
}

// Explains why hwloc refused a file. A newer hwloc may write a version of the format that an older
// one cannot read. The file names that version in the element <topology version="3.0">, and hwloc's
// own in <info name="hwlocVersion">.
Status UnreadableXml(std::string_view xml) {
  const std::string_view element = Between(xml, "<topology", " ", ">");
  const std::string_view version = Between(element, "version=", "\"", "\"");
  const std::optional<int64_t> major = ParseInt(version.substr(0, version.find('.')));
  const unsigned readable = hwloc_get_api_version() >> 16;
  if (!major || *major <= int64_t{readable}) {
    return InvalidArgument("not a topology that hwloc understands (write one by lstopo --of xml)");
  }
  const std::string_view writer = Between(xml, "\"hwlocVersion\"", "value=\"", "\"");
  return InvalidArgument(
      "a topology in version {} of hwloc's format, written by hwloc {}; this build reads versions "
      "up to {} (write one by lstopo --of xml --export-xml-flags v{})",
      Printable(version, kMostVersion), Printable(writer.empty() ? version : writer, kMostVersion),
      readable, readable);
}

StatusOr<Machine::Parts> ReadTrustedXml(const std::string& xml) {
  RESMGR_ASSIGN_OR_RETURN(const Topology topology, NewTopology());
  // hwloc's size includes the terminating NUL.
  const auto size = static_cast<int>(xml.size() + 1);
  if (hwloc_topology_set_xmlbuffer(topology.get(), xml.c_str(), size) != 0 ||
      hwloc_topology_load(topology.get()) != 0) {
    return UnreadableXml(xml);
  }
  return ReadLoaded(topology.get());
}

// Sets the CPUs and memory nodes of the pods' cgroup as allowed; all online CPUs if none of its
// CPUs is online, and all memory nodes if it names none.
void Allow(const CgroupSets& pods, Machine::Parts& parts) {
  CpuSet online;
  for (const Cpu& cpu : parts.cpus) {
    if (cpu.online) online.Add(cpu.id);
  }
  parts.allowed = pods.cpus.Intersects(online) ? pods.cpus : online;
  for (NumaNode& node : parts.nodes)
    node.allowed = pods.mems.empty() || pods.mems.Contains(node.id);
}

}  // namespace

StatusOr<LiveMachine> ReadLiveMachine(const CgroupPlaces& places) {
  RESMGR_ASSIGN_OR_RETURN(const Topology topology, NewTopology());
  if (hwloc_topology_load(topology.get()) != 0) {
    return Unavailable("the operating system does not describe this machine: {}",
                       std::strerror(errno));
  }
  LiveMachine machine;
  RESMGR_ASSIGN_OR_RETURN(machine.parts, ReadLoaded(topology.get()));
  if (!IsFromSysfs(topology.get())) return machine;
  RESMGR_RETURN_IF_ERROR(ApplyIsolated(IsolatedByKernel(), machine.parts.cpus));
  ApplyLocalNodes(machine.parts);
  ApplyCoreTypes(machine.parts.cpus);
  machine.pods = ReadPodsCgroup(places);
  Allow(*machine.pods, machine.parts);
  return machine;
}

StatusOr<Machine::Parts> ReadSyntheticMachine(const std::string& description) {
  RESMGR_RETURN_IF_ERROR(CheckSynthetic(description));
  RESMGR_ASSIGN_OR_RETURN(const Topology topology, NewTopology());
  if (hwloc_topology_set_synthetic(topology.get(), description.c_str()) != 0 ||
      hwloc_topology_load(topology.get()) != 0) {
    return InvalidArgument("hwloc does not understand the synthetic description '{}'",
                           Printable(description));
  }
  return ReadLoaded(topology.get());
}

StatusOr<Machine::Parts> ReadXmlMachine(const std::string& xml) {
  if (xml.size() > kMaxXmlBytes) {
    return InvalidArgument("{} bytes, but a topology has at most {}", xml.size(), kMaxXmlBytes);
  }
  RESMGR_RETURN_IF_ERROR(RunInChild([&xml] { return ReadTrustedXml(xml).status(); }));
  return ReadTrustedXml(xml);
}

}  // namespace resmgr
