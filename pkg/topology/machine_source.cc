// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/machine_source.h"

#include <string>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/sys/files.h"
#include "pkg/topology/hwloc_loader.h"

namespace resmgr {

namespace {

constexpr std::string_view kSyntheticPrefix = "synthetic:";
constexpr std::string_view kXmlPrefix = "xml:";
constexpr std::string_view kForms = "live, synthetic:DESCRIPTION, xml:FILE or a path";

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

StatusOr<Machine::Parts> ReadParts(std::string_view spec) {
  if (spec.empty()) return InvalidArgument("empty description (known forms: {})", kForms);
  if (spec.starts_with(kSyntheticPrefix)) {
    return ReadSyntheticMachine(std::string(Trim(spec.substr(kSyntheticPrefix.size()))));
  }
  if (spec.starts_with(kXmlPrefix)) spec.remove_prefix(kXmlPrefix.size());
  return ReadXmlFile(std::string(spec));
}

}  // namespace

StatusOr<FoundMachine> FindMachine(std::string_view spec, const CgroupPlaces& places) {
  spec = Trim(spec);
  StatusOr<LiveMachine> read = LiveMachine();
  if (spec == "live") {
    read = ReadLiveMachine(places);
  } else {
    StatusOr<Machine::Parts> parts = ReadParts(spec);
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

StatusOr<Machine> LoadMachine(std::string_view spec) {
  RESMGR_ASSIGN_OR_RETURN(FoundMachine found, FindMachine(spec, {}));
  return std::move(found.machine);
}

}  // namespace resmgr
