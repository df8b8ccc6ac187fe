// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/machine_source.h"

#include <algorithm>
#include <string>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/sys/files.h"
#include "pkg/topology/hwloc_loader.h"
#include "pkg/topology/server_types.h"

namespace resmgr {

namespace {

constexpr std::string_view kSyntheticPrefix = "synthetic:";
constexpr std::string_view kXmlPrefix = "xml:";
constexpr std::string_view kForms =
    "live, synthetic:DESCRIPTION, the name of a server type (`cri-resmgr-ctl topology -types` "
    "lists "
    "them), xml:FILE or a path";
constexpr std::string_view kMemory = "memory=";

// The largest machines have a few MiB.
constexpr size_t kMaxXml = size_t{16} << 20;

StatusOr<Machine::Parts> ReadXmlFile(const std::string& path) {
  const StatusOr<std::string> xml = ReadFile(path, kMaxXml);
  if (xml.status().code() == StatusCode::kNotFound) {
    return NotFound("no file '{}' (known forms: {})", path, kForms);
  }
  if (!xml.ok()) return InvalidArgument("{}", Message(xml.status()));
  StatusOr<Machine::Parts> parts = ReadXmlMachine(*xml);
  if (!parts.ok()) return Annotate(parts.status(), "file '" + path + "'");
  return parts;
}

// Where the description tells no amount, hwloc takes 1 GiB for each node.
StatusOr<Machine::Parts> ReadSynthetic(std::string_view description, Bytes memory_per_cpu) {
  RESMGR_ASSIGN_OR_RETURN(Machine::Parts parts, ReadSyntheticMachine(std::string(description)));
  if (memory_per_cpu.value == 0 || description.find(kMemory) != description.npos) return parts;
  for (NumaNode& node : parts.nodes) {
    const int64_t cpus = std::ranges::count(parts.cpus, node.id, &Cpu::numa);
    if (cpus > 0) node.memory = Bytes{cpus * memory_per_cpu.value};
  }
  return parts;
}

StatusOr<Machine::Parts> ReadParts(std::string_view spec, Bytes memory_per_cpu) {
  if (spec.empty()) return InvalidArgument("empty description (known forms: {})", kForms);
  if (spec.starts_with(kSyntheticPrefix)) {
    return ReadSynthetic(Trim(spec.substr(kSyntheticPrefix.size())), memory_per_cpu);
  }
  if (const ServerType* const type = FindServerType(spec)) {
    RESMGR_ASSIGN_OR_RETURN(Machine::Parts parts,
                            ReadSynthetic(type->synthetic, kSyntheticMemoryPerCpu));
    Complete(*type, parts);
    return parts;
  }
  if (spec.starts_with(kXmlPrefix)) spec.remove_prefix(kXmlPrefix.size());
  return ReadXmlFile(std::string(spec));
}

StatusOr<FoundMachine> Find(std::string_view spec, const CgroupPlaces& places,
                            Bytes memory_per_cpu) {
  spec = Trim(spec);
  StatusOr<LiveMachine> read = LiveMachine();
  if (spec == "live") {
    read = ReadLiveMachine(places);
  } else {
    StatusOr<Machine::Parts> parts = ReadParts(spec, memory_per_cpu);
    if (parts.ok()) {
      read->parts = *std::move(parts);
    } else {
      read = parts.status();
    }
  }
  if (!read.ok()) return Annotate(read.status(), "topology");
  StatusOr<Machine> machine = Machine::Create(std::move(read->parts));
  if (!machine.ok()) return Annotate(machine.status(), "topology");
  return FoundMachine{.machine = *std::move(machine), .pods = std::move(read->pods)};
}

}  // namespace

StatusOr<FoundMachine> FindMachine(std::string_view spec, const CgroupPlaces& places) {
  return Find(spec, places, {});
}

StatusOr<Machine> LoadMachine(std::string_view spec, Bytes memory_per_cpu) {
  RESMGR_ASSIGN_OR_RETURN(FoundMachine found, Find(spec, {}, memory_per_cpu));
  return std::move(found.machine);
}

bool LeavesMemoryOpen(std::string_view spec) {
  return Trim(spec).starts_with(kSyntheticPrefix) && spec.find(kMemory) == spec.npos;
}

}  // namespace resmgr
