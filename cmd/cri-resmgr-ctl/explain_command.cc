// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/explain_command.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "cmd/cri-resmgr-ctl/commands.h"
#include "cmd/cri-resmgr-ctl/status_command.h"
#include "cmd/cri-resmgr-ctl/terminal_text.h"
#include "pkg/base/json.h"

namespace resmgr {
namespace {

int64_t Number(const Reply& object, const char* key) {
  return object.value(key, int64_t{0});
}

std::string FullName(const Reply& container) {
  return fmt::format("{}/{}/{}", Cell(container, "namespace"), Cell(container, "pod"),
                     Cell(container, "name"));
}

std::string LimitText(int64_t limit, const std::string& text) {
  return limit > 0 ? text : "none";
}

// The container's own requests and limits: "2 CPUs, limit 2; memory 32 MiB, limit none".
std::string Asked(const Reply& container) {
  const int64_t cpu = Number(container, "request");
  const int64_t cpu_limit = Number(container, "limit");
  const int64_t memory_limit = Number(container, "memoryLimit");
  return fmt::format("{} CPU{}, limit {}; memory {}, limit {}", CpusText(cpu),
                     cpu == 1000 ? "" : "s", LimitText(cpu_limit, CpusText(cpu_limit)),
                     BytesText(Number(container, "memoryRequest")),
                     LimitText(memory_limit, BytesText(memory_limit)));
}

// "CPUs 0-3", "CPU 7".
std::string Listed(std::string_view one, std::string_view list) {
  const bool several = list.find_first_of(",-") != std::string_view::npos;
  return fmt::format("{}{} {}", one, several ? "s" : "", list);
}

// The container's placement: "CPUs 0-3: 1-2 of its own, 0,3 shared; memory node 0".
std::string RunsOn(const Reply& container) {
  const std::string cpus = container.value("cpus", "");
  const std::string own = container.value("exclusive", "");
  const std::string mems = container.value("mems", "");
  std::string text = cpus.empty() ? "any CPUs" : Listed("CPU", cpus);
  if (!own.empty() && own == cpus) text += ", all of its own";
  if (!own.empty() && own != cpus) {
    text += fmt::format(": {} of its own, {} shared", own, Cell(container, "shared"));
  }
  if (own.empty() && !cpus.empty()) text += ", shared";
  return text + (mems.empty() ? "; any memory node" : "; " + Listed("memory node", mems));
}

// Whether the placement is in force. A drift that the last audit found outweighs everything else.
std::string_view InForce(const Reply& container) {
  if (!container.value("audit", "").empty()) return "no: it has drifted";
  return container.value("settled", false) ? "yes" : "not yet";
}

// Extended resources: "hugepages-2Mi 4 MiB, example.com/nic 2".
std::string Amounts(const Reply& object) {
  std::string text;
  for (const auto& [name, amount] : object.items()) {
    const bool bytes = name.starts_with("hugepages-");
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name,
                        bytes ? BytesText(amount.get<int64_t>()) : OrderedJsonText(amount));
  }
  return text;
}

// The pod's resources: "CPU shares 256, quota 50000 of 100000 us, memory limit 120 MiB".
std::string PodAmounts(const Reply& object) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (const int64_t shares = Number(object, "shares"); shares > 0) {
    add(fmt::format("CPU shares {}", shares));
  }
  if (const int64_t quota = Number(object, "quota"); quota > 0) {
    const int64_t period = Number(object, "period");
    add(fmt::format("CPU limit {}", CpusText(quota * 1000 / (period > 0 ? period : 100'000))));
  }
  if (const int64_t limit = Number(object, "memoryLimit"); limit > 0) {
    add(fmt::format("memory limit {}", BytesText(limit)));
  }
  return text;
}

// {"nri 10-logger", "cpu_shares = 512, environment HTTP_PROXY"}: the changes by each stage or
// plugin.
std::vector<std::pair<std::string, std::string>> ChangesOf(const Reply& container) {
  std::vector<std::pair<std::string, std::string>> changes;
  for (const Reply& owner : container.value("owners", Reply::array())) {
    const std::string key = owner.value("key", "");
    const std::string plugin = owner.value("plugin", "");
    const std::string value = owner.value("value", "");
    std::string what = Cell(owner, "field") + (key.empty() ? "" : " " + key) +
                       (value.empty() ? "" : " = " + value);
    std::string whose = Cell(owner, "stage") + (plugin.empty() ? "" : " " + plugin);
    const auto same = std::find_if(changes.begin(), changes.end(),
                                   [&whose](const auto& known) { return known.first == whose; });
    if (same == changes.end()) {
      changes.emplace_back(std::move(whose), std::move(what));
    } else {
      same->second += ", " + what;
    }
  }
  return changes;
}

void AddOwnerRows(const Reply& container, std::vector<TableRow>& rows) {
  for (const auto& [whose, what] : ChangesOf(container))
    rows.push_back({"  set by " + whose, what});
  for (const Reply& line : container.value("leftOut", Reply::array()))
    rows.push_back({"  left out", line.is_string() ? line.get<std::string>() : ""});
}

// Adds a row for each class of the container: "idle 10us" and "10, by CPU; of classes.isolation".
void AddClassRows(const Reply& container, std::vector<TableRow>& rows) {
  for (const Reply& one : container.value("classes", Reply::array())) {
    const std::string reason = one.value("reason", "");
    const bool active = one.value("state", "") == "active";
    rows.push_back(
        {fmt::format("  {} {}", Cell(one, "kind"), Cell(one, "name")),
         fmt::format("{}, {}; of {}{}", active ? Cell(one, "inForce") : "inactive",
                     Cell(one, "way"), Cell(one, "source"), reason.empty() ? "" : "; " + reason)});
  }
}

// Leaves out the problem "refused", which only advises to run this command: the row "refused" says
// more.
void AddProblemRows(const Reply& container, std::vector<TableRow>& rows) {
  for (const Reply& problem : container.value("problems", Reply::array())) {
    const bool told = container.contains("refused") && problem.is_object() &&
                      problem.value("kind", "") == "refused";
    if (!told) rows.push_back({"  problem", ProblemText(problem)});
  }
}

// True under the null policy, which decides nothing: the request and plugins determine everything.
// A container that this policy has to release first has the member "settled".
bool IsUnplaced(const Reply& container) {
  return container.value("policy", "") == "null" && !container.contains("settled");
}

std::string UnplacedExplained(const Reply& container) {
  std::vector<TableRow> rows = {{"  id", Cell(container, "id")},
                                {"  runs on", RunsOn(container)},
                                {"  because", "the null policy is active: it decides nothing"}};
  if (const std::string has = PodAmounts(container); !has.empty()) rows.push_back({"  has", has});
  AddOwnerRows(container, rows);
  return FullName(container) + '\n' + FormatTable(rows);
}

// The CPUs and memory that pools hold, for a container that was refused.
std::string HeldText(const Reply& container) {
  const Reply held = container.value("held", Reply::array());
  if (held.empty()) return "";
  std::vector<TableRow> rows = {
      {"    POOL", "EXCLUSIVE", "SHARED", "ASKED OF SHARED", "FREE OF SHARED"}};
  const bool memory =
      std::ranges::any_of(held, [](const Reply& pool) { return Number(pool, "memoryBytes") > 0; });
  if (memory) rows.front().insert(rows.front().end(), {"MEMORY", "MEMORY USED"});
  for (const Reply& pool : held) {
    TableRow& row = rows.emplace_back();
    row = {"    " + Cell(pool, "name"), Cell(pool, "exclusive"), Cell(pool, "shared"),
           CpusText(Number(pool, "sharedRequest")), CpusText(Number(pool, "free"))};
    if (!memory) continue;
    row.push_back(BytesText(Number(pool, "memoryBytes")));
    row.push_back(BytesText(Number(pool, "memoryUsed")));
  }
  return "  now held (in CPUs)\n" + FormatTable(rows);
}

// A table of the considered places, without columns that no place has; then the other candidates.
std::string CandidatesText(const Reply& container) {
  struct PlaceColumn {
    const char* title;
    const char* member;
    std::string (*text)(const Reply& value);
  };
  static constexpr std::array<PlaceColumn, 4> kPlaceColumns = {{
      {"FREE CPUS", "free", [](const Reply& value) { return CpusText(value.get<int64_t>()); }},
      {"FREE MEMORY", "freeMemory",
       [](const Reply& value) { return BytesText(value.get<int64_t>()); }},
      {"NEAR DEVICES", "nearDevices",
       [](const Reply& value) { return fmt::format("{} %", value.get<int64_t>()); }},
      {"AFFINITY", "affinity",
       [](const Reply& value) { return fmt::format("{:.3g}", value.get<double>()); }},
  }};
  const Reply places = container.value("considered", Reply::array());
  std::vector<PlaceColumn> columns;
  for (const PlaceColumn& column : kPlaceColumns) {
    const auto has = [&column](const Reply& place) { return place.contains(column.member); };
    if (std::ranges::any_of(places, has)) columns.push_back(column);
  }
  std::vector<TableRow> rows(1, TableRow{"    CANDIDATE"});
  for (const PlaceColumn& column : columns)
    rows.front().emplace_back(column.title);
  rows.front().emplace_back("VERDICT");
  for (const Reply& place : places) {
    TableRow& row = rows.emplace_back();
    row.push_back("    " + Cell(place, "name"));
    for (const PlaceColumn& column : columns)
      row.push_back(place.contains(column.member) ? column.text(place.at(column.member)) : "-");
    row.push_back(Cell(place, "verdict"));
  }
  std::string text = places.empty() ? "" : FormatTable(rows);
  // The first candidates repeat these places. Older daemons send no places, only the lines.
  const Reply& lines = container.at("candidates");
  for (size_t i = places.size(); i < lines.size(); ++i)
    text += "    " + lines[i].get<std::string>() + '\n';
  return text;
}

std::string RefusedExplained(const Reply& container) {
  std::vector<TableRow> rows;
  if (container.contains("request")) {
    rows.push_back({"  QoS class", Cell(container, "qos")});
    rows.push_back({"  asks for", Asked(container)});
  }
  rows.push_back({"  refused", Cell(container, "refused")});
  AddProblemRows(container, rows);
  return FullName(container) + "\n" + FormatTable(rows) + HeldText(container);
}

bool IsClaim(const Reply& container) {
  return container.contains("claimState");
}

// "2 CPUs of cpu-numa-1, NUMA node 1; whole cores; for all containers of a pod".
std::string ClaimAsks(const Reply& claim) {
  const int64_t cpu = Number(claim, "request");
  std::string text =
      fmt::format("{} CPU{} of {}", CpusText(cpu), cpu == 1000 ? "" : "s", Cell(claim, "device"));
  if (claim.contains("numaNode")) text += fmt::format(", NUMA node {}", Number(claim, "numaNode"));
  if (claim.value("wholeCores", false)) text += "; whole cores";
  if (claim.contains("coreType")) text += "; of type " + Cell(claim, "coreType");
  if (claim.value("l3", false)) text += "; in one L3 cache";
  if (claim.value("avoidSiblings", false)) text += "; containers see one thread of each core";
  text += claim.value("sharedWithinPod", false) ? "; for all containers of a pod"
                                                : "; for one container";
  return text;
}

// Adds a row for each pod that may use the claim. Older daemons do not list these pods.
void AddReservedRows(const Reply& claim, std::vector<TableRow>& rows) {
  if (!claim.contains("reservedFor")) return;
  const Reply pods = claim.value("reservedFor", Reply::array());
  for (const Reply& pod : pods) {
    const std::string name = pod.value("pod", "");
    rows.push_back({"  reserved for", name.empty()
                                          ? fmt::format("the pod with uid {}", Cell(pod, "uid"))
                                          : fmt::format("pod {}", name)});
  }
  if (pods.empty()) {
    rows.push_back(
        {"  reserved for", fmt::format("all pods of namespace {}", Cell(claim, "namespace"))});
  }
}

// Describes one part of a claim.
std::string ClaimExplained(const Reply& claim) {
  const std::string cpus = claim.value("exclusive", "");
  const std::string since = claim.value("since", "");
  std::vector<TableRow> rows = {
      {"  uid", Cell(claim, "claim")},
      {"  state", Cell(claim, "claimState") + (since.empty() ? "" : ", prepared " + since)},
      {"  asks for", ClaimAsks(claim)},
      {"  holds", cpus.empty() ? "no CPUs" : Listed("CPU", cpus)},
  };
  if (claim.contains("seen")) rows.push_back({"  seen", Listed("CPU", Cell(claim, "seen"))});
  rows.push_back({"  pool", Cell(claim, "pool")});
  rows.push_back({"  because", Cell(claim, "reason")});
  AddReservedRows(claim, rows);
  const Reply carriers = claim.value("carriers", Reply::array());
  for (const Reply& carrier : carriers)
    rows.push_back({"  carried by", carrier.is_string() ? carrier.get<std::string>() : ""});
  if (carriers.empty()) rows.push_back({"  carried by", "no container"});
  const std::string file = claim.value("cdiFile", "");
  if (!file.empty()) rows.push_back({"  CDI file", file});
  AddProblemRows(claim, rows);
  return FullName(claim) + '\n' + FormatTable(rows) + CandidatesText(claim);
}

// Whether these are the parts of one claim.
bool AreOneClaim(const Reply& containers) {
  return std::ranges::all_of(containers, [&containers](const Reply& container) {
    return IsClaim(container) && Cell(container, "claim") == Cell(containers.front(), "claim");
  });
}

// Describes one container in full.
std::string Explained(const Reply& container) {
  if (IsClaim(container)) return ClaimExplained(container);
  if (IsUnplaced(container)) return UnplacedExplained(container);
  if (container.value("state", "") == "refused") return RefusedExplained(container);
  std::vector<TableRow> rows = {
      {"  id", Cell(container, "id")},
      {"  QoS class, state", Cell(container, "qos") + ", " + Cell(container, "state")},
      {"  asks for", Asked(container)},
      {"  runs on", RunsOn(container)},
      {"  pool", Cell(container, "pool")},
      {"  because", Cell(container, "reason")},
      {"  in force", std::string(InForce(container))},
  };
  const auto add = [&rows](const char* title, const std::string& text) {
    if (!text.empty()) rows.push_back({title, text});
  };
  if (const int64_t cold = Number(container, "coldStartMs"); cold > 0) {
    add("  cold start", fmt::format("{} alone for the first {} s of its life",
                                    Listed("memory node", Cell(container, "mems")),
                                    static_cast<double>(cold) / 1000));
  }
  const auto object = [&container](const char* key) {
    return container.value(key, Reply::object());
  };
  for (const Reply& typo : container.value("mistyped", Reply::array()))
    add("  mistyped", typo.get<std::string>());
  add("  refused", container.value("refused", ""));
  add("  not updated", container.value("notUpdated", ""));
  add("  memory elsewhere", container.value("memoryElsewhere", ""));
  add("  audit", container.value("audit", ""));
  AddProblemRows(container, rows);
  add("  advice", container.value("advice", ""));
  add("  by use", container.value("byUse", ""));
  add("  file of its CPUs", container.value("cpuFile", ""));
  AddClassRows(container, rows);
  add("  classes", container.value("classesIgnored", ""));
  add("  role", container.value("role", ""));
  add("  and for", Amounts(object("otherResources")));
  add("  overhead of its pod", PodAmounts(object("podOverhead")));
  add("  its pod as a whole", PodAmounts(object("podResources")));
  AddOwnerRows(container, rows);
  std::string text = FullName(container) + '\n' + FormatTable(rows) + HeldText(container);
  for (const Reply& hint : container.at("hints")) {
    text +=
        fmt::format("  near {}: {}, {}\n", Cell(hint, "source"), Listed("CPU", Cell(hint, "cpus")),
                    Listed("memory node", Cell(hint, "nodes")));
  }
  return text + CandidatesText(container);
}

// Under the null policy: the containers and their changed fields.
std::string UnplacedOverview(const Reply& containers, const TableStyle& style) {
  std::vector<TableRow> rows = {{"CONTAINER", "CPUS", "MEMS", "CHANGED"}};
  for (const Reply& container : containers) {
    std::string text;
    for (const auto& [whose, what] : ChangesOf(container))
      text += fmt::format("{}{} by {}", text.empty() ? "" : "; ", what, whose);
    rows.push_back({FullName(container), Cell(container, "cpus"), Cell(container, "mems"), text});
  }
  return FormatTable(rows, style);
}

// Length of a short id, as people copy it.
constexpr size_t kShortId = 13;

// Whether two of the containers have the same name: several attempts, or pods of the same name.
bool HaveOneName(const Reply& containers) {
  std::set<std::string> names;
  return !std::ranges::all_of(containers, [&names](const Reply& container) {
    return names.insert(FullName(container)).second;
  });
}

// Describes several containers that a policy has placed, one line each.
std::string PlacedOverview(const Reply& containers, const TableStyle& style) {
  std::vector<TableRow> rows = {{"CONTAINER", "ROLE", "STATE", "CPU", "LIMIT", "MEMORY", "CPUS",
                                 "EXCLUSIVE", "MEMS", "IN FORCE", "BECAUSE"}};
  const bool by_id = HaveOneName(containers);
  if (by_id) rows.front().insert(rows.front().begin() + 1, "ID");
  for (const Reply& container : containers) {
    const int64_t limit = Number(container, "limit");
    TableRow& row = rows.emplace_back();
    row = {FullName(container),
           Cell(container, "role"),
           Cell(container, "state"),
           CpusText(Number(container, "request")),
           LimitText(limit, CpusText(limit)),
           BytesText(Number(container, "memoryRequest")),
           Cell(container, "cpus"),
           Cell(container, "exclusive"),
           Cell(container, "mems"),
           std::string(InForce(container)),
           Cell(container, "reason")};
    if (by_id) row.insert(row.begin() + 1, Cell(container, "id").substr(0, kShortId));
  }
  return FormatTable(rows, style) + fmt::format("\n`explain {}` tells more of one of them.\n",
                                                by_id ? "ID" : "NAMESPACE/POD/CONTAINER");
}

// Describes several containers. Under the null policy some may still have the choice of a former
// policy.
std::string Overview(const Reply& containers, const TableStyle& style) {
  Reply placed = Reply::array();
  Reply unplaced = Reply::array();
  for (const Reply& container : containers)
    (IsUnplaced(container) ? unplaced : placed).push_back(container);
  if (unplaced.empty()) return PlacedOverview(placed, style);
  const std::string above = placed.empty() ? "" : PlacedOverview(placed, style) + '\n';
  return above + UnplacedOverview(unplaced, style);
}

class ExplainCommand final : public DaemonCommand {
 public:
  ExplainCommand()
      : DaemonCommand(
            "explain", "Explain why a container runs on its CPUs.",
            R"(Explains the placement of a container: its request, the rule that decided, the candidates and what
they lacked, and which stage or plugin set which field of the request. A container that was refused
is shown with its request and what the pools hold. Several containers are shown as a table. Where
no name is the same, those that begin so are meant. A claim of Dynamic Resource Allocation that
holds CPUs is explained by its name, or its uid.

  cri-resmgr-ctl explain web
  cri-resmgr-ctl explain default/web/nginx
  cri-resmgr-ctl explain 3f2a9c81
  cri-resmgr-ctl explain shop/fast-cpus
  cri-resmgr-ctl explain -n shop -l app=web)") {}

 private:
  bool Watchable() const override { return true; }
  bool IsList() const override { return true; }

  void DeclareMore(CommandLine& line) override {
    filter_.Declare(line);
    line.Arguments("[NAMESPACE/]POD[/CONTAINER]|ID", &what_);
  }

  std::string_view Method() const override { return "Explain"; }

  StatusOr<Reply> Request() const override {
    if (what_.size() > 1 || (what_.empty() && !filter_.given())) {
      return InvalidArgument(
          "explain needs one argument: a pod, a container or the beginning of "
          "a container's id");
    }
    Reply request = {{"what", what_.empty() ? "" : what_.front()}};
    filter_.AddTo(request);
    return request;
  }

  std::string Table(const Reply& reply) const override { return ExplanationText(reply, style()); }

  ContainerFilter filter_;
  std::vector<std::string> what_;
};

}  // namespace

std::string ExplanationText(const Reply& containers, const TableStyle& style) {
  if (containers.empty() || (containers.size() > 1 && !AreOneClaim(containers)))
    return Overview(containers, style);
  std::string text;
  for (const Reply& container : containers)
    text += Explained(container);
  return text;
}

void AddExplainCommand(CommandList& commands) {
  Append<ExplainCommand>(commands);
}

}  // namespace resmgr
