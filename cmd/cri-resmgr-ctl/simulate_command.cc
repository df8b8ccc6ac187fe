// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "cmd/cri-resmgr-ctl/commands.h"
#include "cmd/cri-resmgr-ctl/convert_config.h"
#include "cmd/cri-resmgr-ctl/input.h"
#include "pkg/base/json.h"
#include "pkg/base/terminal.h"
#include "pkg/classes/class_preview.h"
#include "pkg/config/config_file.h"
#include "pkg/config/config_options.h"
#include "pkg/config/policy_classes.h"
#include "pkg/config/yaml_reader.h"
#include "pkg/log/log.h"
#include "pkg/node/policy_setup.h"
#include "pkg/simulator/report.h"
#include "pkg/simulator/scenario.h"
#include "pkg/simulator/simulator.h"
#include "pkg/sys/files.h"
#include "pkg/topology/machine_source.h"
#include "policies/builtin_policies.h"

namespace resmgr {

namespace {

StatusOr<Config> ReadConfigFile(const std::string& file, const ConfigChecks& checks) {
  if (file.empty()) return Config();
  RESMGR_ASSIGN_OR_RETURN(const std::string content, ReadInput(file, kMaxConfigSize));
  if (IsPolicyObject(content)) {
    RESMGR_ASSIGN_OR_RETURN(const ConvertedConfig converted,
                            ConvertConfig("nri-plugins", content, file));
    return ParseConfigFile(converted.yaml, NameOfConverted(file), checks);
  }
  return ParseConfigFile(content, file, checks);
}

// Reads the scenario's files. The files of `claims` may have only ResourceClaims, and are read
// first.
StatusOr<Scenario> ReadScenarios(const std::vector<std::string>& claims,
                                 const std::vector<std::string>& files, const std::string& node,
                                 std::vector<std::string>& notes) {
  Scenario all;
  const auto add = [&](const std::string& file) -> StatusOr<size_t> {
    RESMGR_ASSIGN_OR_RETURN(const std::string text, ReadNamedInput(file, kMaxScenarioSize));
    RESMGR_ASSIGN_OR_RETURN(Scenario scenario, ReadScenario(text, NameOfInput(file), &notes, node));
    std::move(scenario.begin(), scenario.end(), std::back_inserter(all));
    return scenario.size();
  };
  for (const std::string& file : claims) {
    RESMGR_ASSIGN_OR_RETURN(const size_t steps, add(file));
    if (steps == 0) {
      return InvalidArgument("-claims {}: there is no ResourceClaim in it{}", NameOfInput(file),
                             node.empty() ? "" : " for node " + node);
    }
  }
  for (const Step& step : all) {
    if (std::holds_alternative<ClaimDocument>(step.action)) continue;
    return InvalidArgument("{}: -claims takes ResourceClaims; give other documents as a SCENARIO",
                           step.where);
  }
  for (const std::string& file : files) {
    const auto known = std::ssize(notes);
    RESMGR_ASSIGN_OR_RETURN(const size_t steps, add(file));
    if (steps > 0) continue;
    // The notes say what was skipped, such as pods of other nodes.
    std::string skipped = node.empty() ? "" : " for node " + node;
    for (auto note = notes.begin() + known; note != notes.end(); ++note)
      skipped += "; " + *note;
    return InvalidArgument("{}: there is nothing in it to simulate{}", NameOfInput(file), skipped);
  }
  for (std::string& note : NotesOnClaims(all))
    notes.push_back(std::move(note));
  return all;
}

// The policy of the configuration; the null policy if it names none.
StatusOr<std::unique_ptr<Policy>> PolicyFor(const Config& config, const Machine& machine,
                                            const PolicyRegistry& policies) {
  RESMGR_ASSIGN_OR_RETURN(std::unique_ptr<Policy> policy,
                          MakePolicy(config.policy, config.runtimes, machine, policies));
  if (policy != nullptr) return policy;
  return policies.Create(kNullPolicy, {.machine = machine, .available = {}, .reserved = {}});
}

template <typename Action>
bool Has(const Scenario& scenario) {
  return std::ranges::any_of(
      scenario, [](const Step& step) { return std::holds_alternative<Action>(step.action); });
}

class SimulateCommand final : public Command {
 public:
  SimulateCommand()
      : Command(
            "simulate",
            "Simulate the placement of pods on any machine, without a daemon or a runtime.",
            R"(Shows where the daemon would place the containers of pods, using the daemon's own code and
configuration, on the machine that -topology describes. A scenario is one or more files, read in
order; - is standard input. Each file is a recording made with -dump record:FILE, or YAML documents
separated by ---

  a Pod manifest                  created as a kubelet does: init containers one after the other
                                  (sidecars keep running), then the containers
  a Deployment, StatefulSet, ...  all of its replicas; the one pod of a DaemonSet, the pods of a Job
                                  or of one run of a CronJob that run at a time
  a ResourceClaim                 prepared as the driver for claims does it, if it is allocated;
                                  containers that carry it run on its CPUs
  a List                          its items, as kubectl prints them; pods that have ended and
                                  objects of other kinds are skipped with a note
  delete: NS/POD[/CONTAINER]      stops and removes it
  resize: {pod: NS/POD, container: C, resources: {requests: {cpu: "3"}, limits: {cpu: "3"}}}
  restart: relay                  the daemon stops and starts again
  wait: 90s                       time passes, for containers that start cold
  config: {policy: {...}}         another configuration is delivered to the running daemon
  rebalance: preview|apply        the policy looks for better places

-claims FILE takes ResourceClaims alone, and tells which of them get CPUs, and why others do not:

  kubectl get resourceclaims -A -o yaml | cri-resmgr-ctl simulate -policy static -claims -

A file of YAML has at most 30,000 documents, 32 MiB, 1,000,000 values and 10,000 pods and claims.

A refused pod or container is shown with the reason; it is not an error of the simulation. Classes of
containers (docs/classes.md) are shown with their source, and with masks and schemata; they are
those of a runtime that can do all that there is for classes. -o json
prints one line per effect; -o page is a file that the daemon's page for browsers opens; -o table
ends with a summary, and -explain adds the reasons.

  kubectl get pods -A -o yaml | cri-resmgr-ctl simulate -config static.yaml -
  cri-resmgr-ctl simulate -topology "synthetic:package:2 numa:2 core:8 pu:2" -config static.yaml \
    -o table pods.yaml

Several -topology or -policy are compared: one line of totals for each machine and policy. The exit
status is 1 if one of them is not possible.

  kubectl get pods -A -o json | cri-resmgr-ctl simulate -node worker-7 -policy static \
    -policy topology-aware -topology epyc-9654-2s -topology xeon-8480-2s-snc4 -

-rdt shows what classes of caches and memory bandwidth come to: 20 ways of each L3 cache, and steps
of 10 %.

  cri-resmgr-ctl simulate -topology epyc-9654-2s -config classes.yaml -rdt l3:20,mb:10)") {}
  void Declare(CommandLine& line) override;
  Status Run(std::ostream& out) override;

 private:
  // One machine under one configuration.
  struct Setting {
    std::string topology{};
    std::shared_ptr<const Machine> machine{};
    Config config{};
    std::optional<RdtMachine> rdt{};
  };
  struct Result {
    std::vector<StepEffect> effects{};
    Totals totals{};
    std::string summary{};
  };

  StatusOr<Result> Simulate(const Setting& setting, const Scenario& scenario,
                            std::ostream* lines) const;
  // The schemata of all classes on the machine.
  StatusOr<std::string> Schemata(const Setting& setting) const;
  Status Compare(const std::vector<Setting>& settings, const Scenario& scenario,
                 std::ostream& out) const;
  StatusOr<std::vector<Setting>> Settings() const;

  std::vector<std::string> topologies_;
  std::vector<std::string> policies_;
  std::string node_;
  std::string config_file_;
  std::string rdt_;
  std::string output_ = "table";
  bool explain_ = false;
  std::vector<std::string> claims_;
  std::vector<std::string> scenarios_;
};

void SimulateCommand::Declare(CommandLine& line) {
  line.Flag("topology", "SPEC", "The machine, as for the command topology; this one by default.",
            &topologies_);
  line.Flag("policy", "NAME", "The policy, instead of that of -config.", &policies_);
  line.Flag("node", "NODE", "Only pods that run on this node (spec.nodeName).", &node_);
  line.Flag("config", "FILE",
            "The daemon's configuration: YAML, or one flag per line without dashes; or a policy "
            "object of nri-plugins. Without it "
            "there is no policy.",
            &config_file_);
  line.Flag("rdt", "SPEC",
            "The caches for classes.rdt: l3:BITS, l2:BITS, min:BITS, mb:STEP, cdp, separated by "
            "commas. Shows the schemata of classes; SCENARIO may be left out.",
            &rdt_);
  line.Choice("o", {"table", "json", "page"},
              "The output format. page: the machine and the effects, for the daemon's page.",
              &output_);
  line.Flag("claims", "FILE",
            "ResourceClaims that are prepared before the scenario, which may be left out. May be "
            "repeated.",
            &claims_);
  line.Flag("explain", "Add the reason and the candidates of each placement to the table.",
            &explain_);
  line.Arguments("SCENARIO...", &scenarios_);
}

StatusOr<std::vector<SimulateCommand::Setting>> SimulateCommand::Settings() const {
  const PolicyRegistry registry = BuiltinPolicies();
  const ConfigChecks checks = ChecksWith(registry);
  RESMGR_ASSIGN_OR_RETURN(const Config config, ReadConfigFile(config_file_, checks));
  std::vector<std::string> topologies = topologies_;
  if (topologies.empty()) topologies.emplace_back("live");
  std::vector<std::string> policies = policies_;
  if (policies.empty()) policies.push_back(config.policy.active);
  std::vector<Setting> settings;
  for (const std::string& topology : topologies) {
    auto machine = LoadMachine(topology, kSyntheticMemoryPerCpu);
    if (!machine.ok()) return Annotate(machine.status(), "-topology " + topology);
    const auto shared = std::make_shared<const Machine>(*std::move(machine));
    for (const std::string& policy : policies) {
      Setting setting = {.topology = topology, .machine = shared, .config = config};
      ConfigOptions options;
      RESMGR_RETURN_IF_ERROR(Annotate(options.Set("policy", policy, checks), "-policy"));
      options.ApplyTo(setting.config);
      RESMGR_RETURN_IF_ERROR(CheckNamesOfPolicy(setting.config, checks));
      if (!rdt_.empty()) {
        auto rdt = ParseRdtMachine(rdt_, *shared);
        if (!rdt.ok()) return Annotate(rdt.status(), "-rdt");
        // An error of the schemata is reported here: the simulation itself would silently leave
        // them out.
        RESMGR_RETURN_IF_ERROR(PreviewSchemata(config.classes.rdt, *rdt).status());
        setting.rdt = *std::move(rdt);
      }
      settings.push_back(std::move(setting));
    }
  }
  return settings;
}

// If `lines` is not null, the effects are written there while the simulation runs, in the form of
// -o.
StatusOr<SimulateCommand::Result> SimulateCommand::Simulate(const Setting& setting,
                                                            const Scenario& scenario,
                                                            std::ostream* lines) const {
  const PolicyRegistry policies = BuiltinPolicies();
  const ConfigChecks checks = ChecksWith(policies);
  const Machine& machine = *setting.machine;
  RESMGR_ASSIGN_OR_RETURN(
      const std::unique_ptr<Simulator> simulator,
      Simulator::Create(
          {.machine = machine,
           .make_policy =
               [&](const Config& wanted) { return PolicyFor(wanted, machine, policies); },
           .config = setting.config,
           .read_config = [&checks](const ConfigNode& node) { return ParseConfig(node, checks); },
           .classes =
               [&](const Config& wanted) {
                 return std::make_shared<const ClassPreview>(
                     machine, ClassesInForce(wanted, policies), setting.rdt);
               },
           .explain = explain_}));
  RESMGR_RETURN_IF_ERROR(simulator->Check(scenario));
  Result result;
  const bool for_page = output_ == "page";
  if (lines != nullptr && for_page) *lines << MachineToJson(machine) << '\n';
  for (const Step& step : scenario) {
    for (StepEffect& effect : simulator->Run(step)) {
      if (lines != nullptr) {
        *lines << (for_page ? ToPageJson(effect, simulator->node().Reserved()) : ToJson(effect))
               << '\n';
      } else {
        result.effects.push_back(std::move(effect));
      }
    }
  }
  result.totals = TotalsOf(result.effects, simulator->node());
  result.summary = Summary(result.effects, simulator->node());
  return result;
}

StatusOr<std::string> SimulateCommand::Schemata(const Setting& setting) const {
  if (!setting.rdt) return std::string();
  RESMGR_ASSIGN_OR_RETURN(const auto schemata,
                          PreviewSchemata(setting.config.classes.rdt, *setting.rdt));
  if (output_ == "json") {
    std::string lines;
    for (const auto& [name, text] : schemata) {
      const nlohmann::ordered_json line = {{"class", name}, {"schemata", text}};
      lines += PrintableJson(OrderedJsonText(line)) + "\n";
    }
    return lines;
  }
  std::vector<TableRow> rows = {{"CLASS", "SCHEMATA"}};
  for (const auto& [name, text] : schemata)
    rows.push_back({Printable(name), text});
  return FormatTable(rows);
}

constexpr std::ptrdiff_t kClaimsColumn = 3;

// Prints a line of totals for each setting, with numbers of claims if the scenario has any. The
// errors of settings that are not possible stand below the table; a line of JSON has its error.
Status SimulateCommand::Compare(const std::vector<Setting>& settings, const Scenario& scenario,
                                std::ostream& out) const {
  std::vector<TableRow> rows = {{"TOPOLOGY", "CPUS", "POLICY", "PLACED", "REFUSED", "MOVED",
                                 "EXCLUSIVE", "FREE", "ON PARTLY TAKEN CORES"}};
  const bool claims = Has<ClaimDocument>(scenario);
  if (claims) rows.front().insert(rows.front().begin() + kClaimsColumn, "CLAIMS");
  std::string errors;
  int impossible = 0;
  for (const Setting& setting : settings) {
    const std::string& policy = setting.config.policy.active;
    const int cpus = setting.machine->allowed().size();
    const StatusOr<Result> result = Simulate(setting, scenario, nullptr);
    const Totals totals = result.ok() ? result->totals : Totals();
    const std::string error(Message(result.status()));
    if (!result.ok()) ++impossible;
    if (output_ == "json") {
      nlohmann::ordered_json line = {{"topology", setting.topology},
                                     {"policy", policy},
                                     {"cpus", cpus},
                                     {"placed", totals.placed},
                                     {"refused", totals.refused},
                                     {"moved", totals.moved},
                                     {"movedSharing", totals.moved_sharing},
                                     {"exclusive", totals.exclusive.size()},
                                     {"free", totals.free.size()},
                                     {"freeOnPartlyTakenCores", totals.broken.size()},
                                     {"error", error}};
      if (claims) {
        line["claims"] = totals.claims.size();
        line["claimsRefused"] = totals.refused_claims.size();
      }
      out << PrintableJson(OrderedJsonText(line)) << '\n';
    } else if (!result.ok()) {
      rows.emplace_back(rows.front().size(), "-");
      rows.back()[0] = setting.topology;
      rows.back()[1] = fmt::to_string(cpus);
      rows.back()[2] = policy;
      errors += fmt::format("{}, {}: {}\n", setting.topology, policy, error);
    } else {
      rows.push_back({setting.topology, fmt::to_string(cpus), policy, fmt::to_string(totals.placed),
                      fmt::to_string(totals.refused),
                      fmt::to_string(totals.moved + totals.moved_sharing),
                      fmt::to_string(totals.exclusive.size()), fmt::to_string(totals.free.size()),
                      fmt::to_string(totals.broken.size())});
      if (claims) {
        rows.back().insert(rows.back().begin() + kClaimsColumn,
                           fmt::format("{} of {}", totals.claims.size(),
                                       totals.claims.size() + totals.refused_claims.size()));
      }
    }
  }
  if (output_ != "json") out << FormatTable(rows) << PrintableLines(errors);
  if (impossible == 0) return OkStatus();
  return InvalidArgument("{} of {} settings are not possible", impossible, settings.size());
}

Status SimulateCommand::Run(std::ostream& out) {
  const bool nothing = scenarios_.empty() && claims_.empty();
  if (nothing && rdt_.empty()) return InvalidArgument("no scenario given; see -help");
  // The output shows what happens, so only errors are logged.
  ConfigureLogging({.level = LogLevel::kError});
  RESMGR_ASSIGN_OR_RETURN(const std::vector<Setting> settings, Settings());
  std::vector<std::string> notes;
  RESMGR_ASSIGN_OR_RETURN(const Scenario scenario,
                          ReadScenarios(claims_, scenarios_, node_, notes));
  const auto tell = [&] {
    for (const std::string& note : notes)
      Command::notes() << "cri-resmgr-ctl: " << PrintableLines(note) << '\n';
  };
  if (settings.size() > 1 && output_ == "page") {
    return InvalidArgument("-o page shows one machine and one policy");
  }
  if (nothing) {
    for (const Setting& setting : settings) {
      RESMGR_ASSIGN_OR_RETURN(const std::string schemata, Schemata(setting));
      out << schemata;
    }
    return OkStatus();
  }
  if (settings.size() > 1) {
    tell();
    return Compare(settings, scenario, out);
  }
  std::ostringstream lines;
  RESMGR_ASSIGN_OR_RETURN(const Result result,
                          Simulate(settings[0], scenario, output_ == "table" ? nullptr : &lines));
  tell();
  if (output_ != "table") {
    out << lines.str();
    return OkStatus();
  }
  out << ToTable(result.effects, explain_) << '\n' << result.summary;
  if (settings[0].config.policy.active == kNullPolicy && !Has<ConfigStep>(scenario)) {
    out << "policy         null, which places nothing: name another by -policy, or in -config "
           "FILE\n";
  }
  const bool binds_memory = std::ranges::any_of(
      result.effects, [](const StepEffect& effect) { return !effect.mems.empty(); });
  if (binds_memory && LeavesMemoryOpen(settings[0].topology)) {
    out << "memory         4 GiB for each CPU of a NUMA node, since the topology tells none "
           "(numa:2(memory=64GiB) would)\n";
  }
  return OkStatus();
}

}  // namespace

void AddSimulateCommand(CommandList& commands) {
  Append<SimulateCommand>(commands);
}

}  // namespace resmgr
