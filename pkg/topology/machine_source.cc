// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/machine_source.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "pkg/base/parse.h"
#include "pkg/topology/hwloc_loader.h"

namespace resmgr {

namespace {

constexpr std::string_view kSyntheticPrefix = "synthetic:";
constexpr std::string_view kXmlPrefix = "xml:";
constexpr std::string_view kForms = "live, synthetic:DESCRIPTION, xml:FILE or a path";

StatusOr<std::string> ReadFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  // Reading a directory opens well and fails here; an empty file sets the fail bit too.
  if (file) text << file.rdbuf();
  if (!file.is_open() || errno == EISDIR) {
    if (errno == ENOENT) return NotFound("no file '{}' (known forms: {})", path, kForms);
    return InvalidArgument("cannot read '{}': {}", path, std::strerror(errno));
  }
  return text.str();
}

StatusOr<Machine::Parts> ReadXmlFile(const std::string& path) {
  RESMGR_ASSIGN_OR_RETURN(const std::string xml, ReadFile(path));
  StatusOr<Machine::Parts> parts = ReadXmlMachine(xml);
  if (!parts.ok()) return Annotate(parts.status(), "file '" + path + "'");
  return parts;
}

StatusOr<Machine::Parts> ReadParts(std::string_view spec) {
  if (spec.empty()) return InvalidArgument("empty description (known forms: {})", kForms);
  if (spec == "live") return ReadLiveMachine();
  if (spec.starts_with(kSyntheticPrefix)) {
    return ReadSyntheticMachine(std::string(Trim(spec.substr(kSyntheticPrefix.size()))));
  }
  if (spec.starts_with(kXmlPrefix)) spec.remove_prefix(kXmlPrefix.size());
  return ReadXmlFile(std::string(spec));
}

}  // namespace

StatusOr<Machine> LoadMachine(std::string_view spec) {
  StatusOr<Machine::Parts> parts = ReadParts(Trim(spec));
  if (!parts.ok()) return Annotate(parts.status(), "topology");
  StatusOr<Machine> machine = Machine::Create(*std::move(parts));
  if (!machine.ok()) return Annotate(machine.status(), "topology");
  return machine;
}

}  // namespace resmgr
