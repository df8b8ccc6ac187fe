// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cmd/cri-resmgr-ctl/commands.h"
#include "cmd/cri-resmgr-ctl/daemon_command.h"
#include "pkg/base/json.h"
#include "pkg/base/terminal.h"
#include "pkg/dump/yaml_text.h"
#include "pkg/sys/unix_socket.h"
#include "pkg/topology/machine_source.h"

namespace resmgr {
namespace {

StatusOr<nlohmann::json> Described(const ServerType& type) {
  RESMGR_ASSIGN_OR_RETURN(const Machine machine, LoadMachine(type.name));
  return nlohmann::json{{"name", type.name},
                        {"cpus", machine.online().size()},
                        {"packages", machine.packages().size()},
                        {"numaNodes", machine.nodes().size()},
                        {"l3Caches", machine.l3_groups().size()},
                        {"description", type.description}};
}

// Shows a machine as the policies see it: the one that -topology describes, else the running
// daemon's; if no daemon runs and -socket was not given, the machine of this process. With -types,
// the servers that -topology knows by name.
class TopologyCommand final : public Command {
 public:
  TopologyCommand()
      : Command(
            "topology", "Show the machine: CPUs, cores, caches, packages, NUMA nodes.",
            R"(Shows the machine as the policies see it: which CPUs are online, isolated or not available, which
CPUs share a core, an L3 cache, a die, a package or a NUMA node, and the type, size and distance
of memory. By default it is the machine of the running daemon, or this machine if no daemon runs.
-topology selects another one; cri-resmgr accepts the same -topology, so that placements can be
tried for a machine without access to it.

  cri-resmgr-ctl topology
  cri-resmgr-ctl topology -topology "synthetic:package:2 numa:2 l3:2 core:8 pu:2"
  cri-resmgr-ctl topology -topology epyc-9654-2s-nps4      # -types lists all server types
  lstopo --of xml > node7.xml && cri-resmgr-ctl topology -topology node7.xml -o json)") {}
  void Declare(CommandLine& line) override;
  Status Run(std::ostream& out) override;

 private:
  Status ListTypes(std::ostream& out) const;
  StatusOr<std::string> FromDaemon() const;
  StatusOr<std::string> FromDescription(std::string_view description) const;

  std::optional<std::string> topology_;
  bool types_ = false;
  std::string output_ = "table";
};

void TopologyCommand::Declare(CommandLine& line) {
  line.Flag(
      "topology", "SPEC",
      "live: this machine. synthetic:DESCRIPTION: hwloc's short notation, level by level. The "
      "name of a server type, see -types. A path, or xml:FILE: a file that lstopo wrote; CPUs that "
      "its kernel isolates can be "
      "named in it by <info name=\"IsolatedCPUs\" value=\"2-3\"/> below the Machine object.",
      &topology_);
  line.Flag("types", "List the server types that -topology knows by name.", &types_);
  line.Choice("o", {"table", "json", "yaml"}, "The output format.", &output_);
}

// False, too, if this user may not know.
bool NothingListens(const std::string& socket) {
  if (::access(socket.c_str(), R_OK | W_OK) != 0 && errno != ENOENT) return false;
  return !ConnectUnix(socket).ok();
}

StatusOr<std::string> TopologyCommand::FromDaemon() const {
  const nlohmann::json request = {{"form", output_ == "table" ? "table" : "json"}};
  return AskDaemon(socket(), "Topology", JsonText(request));
}

StatusOr<std::string> TopologyCommand::FromDescription(std::string_view description) const {
  RESMGR_ASSIGN_OR_RETURN(const Machine machine, LoadMachine(description));
  return output_ == "table" ? MachineToTable(machine) : MachineToJson(machine);
}

Status TopologyCommand::ListTypes(std::ostream& out) const {
  nlohmann::json types = nlohmann::json::array();
  for (const ServerType& type : ServerTypes()) {
    RESMGR_ASSIGN_OR_RETURN(nlohmann::json described, Described(type));
    types.push_back(std::move(described));
  }
  if (output_ == "json") {
    out << types.dump(2) << '\n';
  } else if (output_ == "yaml") {
    out << dump::ToYaml(types);
  } else {
    std::vector<TableRow> rows = {{"NAME", "CPUS", "PACKAGES", "NUMA", "L3", "DESCRIPTION"}};
    for (const nlohmann::json& type : types) {
      rows.push_back({type["name"], type["cpus"].dump(), type["packages"].dump(),
                      type["numaNodes"].dump(), type["l3Caches"].dump(), type["description"]});
    }
    out << FormatTable(rows);
  }
  return OkStatus();
}

Status TopologyCommand::Run(std::ostream& out) {
  if (types_ && topology_) return InvalidArgument("give one of -types and -topology");
  if (types_) return ListTypes(out);
  StatusOr<std::string> text = topology_ ? FromDescription(*topology_) : FromDaemon();
  const bool no_answer = !topology_ && text.status().code() == StatusCode::kUnavailable;
  if (no_answer && !program().socket_told && NothingListens(socket()))
    text = FromDescription("live");
  if (!text.ok()) return text.status();
  if (output_ == "yaml") {
    const auto machine = ParseJson(*text);
    if (!machine) return Internal("the daemon's answer is not JSON");
    out << dump::ToYaml(*machine);
  } else if (output_ == "json") {
    out << PrintableJson(*text) << '\n';
  } else {
    out << PrintableLines(*text);
  }
  return OkStatus();
}

}  // namespace

void AddTopologyCommand(CommandList& commands) {
  Append<TopologyCommand>(commands);
}

}  // namespace resmgr
