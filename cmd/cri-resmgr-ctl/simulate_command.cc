// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/simulate_command.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include <unistd.h>

#include "pkg/base/terminal.h"
#include "pkg/config/config_file.h"
#include "pkg/config/config_text.h"
#include "pkg/log/log.h"
#include "pkg/node/policy_setup.h"
#include "pkg/simulator/report.h"
#include "pkg/simulator/simulator.h"
#include "pkg/sys/files.h"
#include "pkg/topology/machine_format.h"
#include "pkg/topology/machine_source.h"
#include "policies/builtin_policies.h"

namespace resmgr {

namespace {

StatusOr<Config> ReadConfigFile(const std::string& file, const ConfigChecks& checks) {
  if (file.empty()) return Config();
  RESMGR_ASSIGN_OR_RETURN(const std::string content, ReadInput(file, kMaxConfigSize));
  return ParseConfigFile(content, file, checks);
}

StatusOr<std::string> ReadStandardInput() {
  std::string text;
  std::array<char, size_t{64} * 1024> buffer;
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count == 0) return text;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Unavailable("standard input: {}", std::strerror(errno));
    text.append(buffer.data(), static_cast<size_t>(count));
    if (text.size() > kMaxScenarioSize) {
      return InvalidArgument("standard input: it has more than {} bytes", kMaxScenarioSize);
    }
  }
}

StatusOr<Scenario> ReadScenarios(const std::vector<std::string>& files,
                                 std::vector<std::string>& notes) {
  Scenario all;
  for (const std::string& file : files) {
    const bool standard_input = file == "-";
    RESMGR_ASSIGN_OR_RETURN(const std::string text, standard_input
                                                        ? ReadStandardInput()
                                                        : ReadInput(file, kMaxScenarioSize));
    const std::string name = standard_input ? "standard input" : file;
    RESMGR_ASSIGN_OR_RETURN(Scenario scenario, ReadScenario(text, name, &notes));
    if (scenario.empty()) return InvalidArgument("{}: there is nothing in it to simulate", name);
    std::move(scenario.begin(), scenario.end(), std::back_inserter(all));
  }
  return all;
}

// Without a policy in the configuration the simulation uses the null policy.
StatusOr<std::unique_ptr<Policy>> PolicyFor(const Config& config, const Machine& machine,
                                            const PolicyRegistry& policies) {
  RESMGR_ASSIGN_OR_RETURN(std::unique_ptr<Policy> policy,
                          MakePolicy(config.policy, config.runtimes, machine, policies));
  if (policy != nullptr) return policy;
  return policies.Create(kNullPolicy, {.machine = machine, .available = {}, .reserved = {}});
}

}  // namespace

std::string_view SimulateCommand::summary() const {
  return "Simulate the placement of pods on any machine, without a daemon or a runtime.";
}

std::string_view SimulateCommand::description() const {
  return R"(Shows where the daemon would place the containers of pods, using the daemon's own code and
configuration, on the machine that -topology describes. A scenario is one or more files, read in
order; - is standard input. Each file is a recording made with -dump record:FILE, or YAML documents
separated by ---

  a Pod manifest                  created as a kubelet does: init containers one after the other
                                  (sidecars keep running), then the containers
  a Deployment, StatefulSet, ...  all of its replicas; the one pod of a DaemonSet, the pods of a Job
                                  or of one run of a CronJob that run at a time
  a List                          its items, as kubectl prints them; pods that have ended and
                                  objects of other kinds are skipped with a note
  delete: NS/POD[/CONTAINER]      stops and removes it
  resize: {pod: NS/POD, container: C, resources: {requests: {cpu: "3"}, limits: {cpu: "3"}}}
  restart: relay                  the daemon stops and starts again
  wait: 90s                       time passes, for containers that start cold
  config: {policy: {...}}         another configuration is delivered to the running daemon
  rebalance: preview|apply        the policy looks for better places

A file of YAML has at most 30,000 documents, 32 MiB, 1,000,000 values and 10,000 pods.

A refused pod or container is shown with the reason; it is not an error of the simulation. -o json
prints one line per effect; -o page is a file that the daemon's page for browsers opens; -o table
ends with a summary, and -explain adds the reasons.

  kubectl get pods -A -o yaml | cri-resmgr-ctl simulate -config static.yaml -
  cri-resmgr-ctl simulate -topology "synthetic:package:2 numa:2 core:8 pu:2" -config static.yaml \
    -o table pods.yaml)";
}

void SimulateCommand::Declare(CommandLine& line) {
  line.Flag("topology", "SPEC", "The machine, as for the command topology.", &topology_);
  line.Flag("config", "FILE",
            "The daemon's configuration: YAML, or one flag per line without dashes. Without it "
            "there is no policy.",
            &config_file_);
  line.Choice("o", {"table", "json", "page"},
              "The output format. page: the machine and the effects, for the daemon's page.",
              &output_);
  line.Flag("explain", "Add the reason and the candidates of each placement to the table.",
            &explain_);
  line.Arguments("SCENARIO...", &scenarios_);
}

Status SimulateCommand::Run(std::ostream& out) {
  if (scenarios_.empty()) return InvalidArgument("no scenario given; see -help");
  // The output shows what happens.
  ConfigureLogging({.level = LogLevel::kError});
  auto machine = LoadMachine(topology_, kSyntheticMemoryPerCpu);
  if (!machine.ok()) return Annotate(machine.status(), "-topology " + topology_);
  const PolicyRegistry policies = BuiltinPolicies();
  const ConfigChecks checks = ChecksWith(policies);
  RESMGR_ASSIGN_OR_RETURN(Config config, ReadConfigFile(config_file_, checks));
  std::vector<std::string> notes;
  RESMGR_ASSIGN_OR_RETURN(const Scenario scenario, ReadScenarios(scenarios_, notes));
  RESMGR_ASSIGN_OR_RETURN(
      const std::unique_ptr<Simulator> simulator,
      Simulator::Create(
          {.machine = *machine,
           .make_policy =
               [&](const Config& wanted) { return PolicyFor(wanted, *machine, policies); },
           .config = std::move(config),
           .read_config = [&checks](const ConfigNode& node) { return ParseConfig(node, checks); },
           .explain = explain_}));
  RESMGR_RETURN_IF_ERROR(simulator->Check(scenario));
  for (const std::string& note : notes)
    *notes_ << "cri-resmgr-ctl: " << PrintableLines(note) << '\n';

  if (output_ == "page") out << MachineToJson(*machine) << '\n';
  std::vector<StepEffect> all;
  for (const Step& step : scenario) {
    for (StepEffect& effect : simulator->Run(step)) {
      if (output_ == "json") {
        out << ToJson(effect) << '\n';
      } else if (output_ == "page") {
        out << ToPageJson(effect, simulator->node().Reserved()) << '\n';
      } else {
        all.push_back(std::move(effect));
      }
    }
  }
  if (output_ != "table") return OkStatus();
  out << ToTable(all, explain_) << '\n' << Summary(all, simulator->node());
  const bool binds_memory =
      std::ranges::any_of(all, [](const StepEffect& effect) { return !effect.mems.empty(); });
  if (binds_memory && LeavesMemoryOpen(topology_)) {
    out << "memory         4 GiB for each CPU of a NUMA node, since the topology tells none "
           "(numa:2(memory=64GiB) would)\n";
  }
  return OkStatus();
}

}  // namespace resmgr
