// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/node_commands.h"

#include <string>
#include <vector>

#include "cmd/cri-resmgr-ctl/daemon_command.h"
#include "cmd/cri-resmgr-ctl/pools_drawing.h"
#include "pkg/base/table.h"

namespace resmgr {
namespace {

std::string Gibibytes(const Reply& object, const char* key) {
  constexpr double kGibibyte = 1 << 30;
  const auto bytes = object.at(key).get<double>();
  return bytes == 0 ? "-" : fmt::format("{:.1f} GiB", bytes / kGibibyte);
}

std::string MilliCpus(const Reply& object, const char* key) {
  return fmt::format("{}m", object.at(key).get<int64_t>());
}

class StatusCommand final : public DaemonCommand {
 public:
  std::string_view name() const override { return "status"; }
  std::string_view summary() const override {
    return "Show the running daemon: policy, configuration, runtime, what it holds.";
  }
  std::string_view description() const override {
    return "Shows the running daemon: which policy is active, where its configuration comes from,\n"
           "whether the runtime is there, and how much it holds.";
  }

 private:
  std::string_view Method() const override { return "Status"; }
  std::string Table(const Reply& reply) const override {
    return FormatTable({
        {"version", Cell(reply, "version")},
        {"policy", Cell(reply, "policy")},
        {"configuration",
         Cell(reply, "config") + (reply.value("forced", false) ? " (forced)" : "")},
        {"up", Cell(reply, "uptimeSeconds") + " s"},
        {"runtime", fmt::format("{} ({})", Cell(reply, "runtime"), Cell(reply, "runtimeSocket"))},
        {"serves", Cell(reply, "relaySocket")},
        {"pods", Cell(reply, "pods")},
        {"containers", Cell(reply, "containers")},
        {"CPUs online", Cell(reply, "online")},
    });
  }
};

class PoliciesCommand final : public DaemonCommand {
 public:
  std::string_view name() const override { return "policies"; }
  std::string_view summary() const override { return "List the policies; * is the active one."; }
  std::string_view description() const override {
    return "Lists the policies that the running daemon has. The active one is marked with *.";
  }

 private:
  std::string_view Method() const override { return "Policies"; }
  std::string Table(const Reply& reply) const override {
    std::vector<TableRow> rows;
    for (const Reply& policy : reply) {
      rows.push_back({policy.value("active", false) ? "*" : " ", Cell(policy, "name"),
                      Cell(policy, "description")});
    }
    return rows.empty() ? "" : FormatTable(rows);
  }
};

class PoolsCommand final : public DaemonCommand {
 public:
  std::string_view name() const override { return "pools"; }
  std::string_view summary() const override {
    return "Draw the active policy's pools with their CPUs, memory and containers.";
  }
  std::string_view description() const override {
    return R"(Draws the pools of the active policy as a tree, each with the containers in it.

  SHARED       CPUs that the pool's containers may run on together
  FREE         how much of these can still be asked for, the pools above and below considered;
               below 0 where more is asked for than there is
  EXCLUSIVE    CPUs that belong to single containers
  MEMORY USED  what the containers here and below may use; empty where the memory is that of the
               pool above

Long lists of CPUs end with their number; -o json has them all.)";
  }

 private:
  std::string_view Method() const override { return "Pools"; }

  std::string Table(const Reply& reply) const override { return DrawPools(reply); }
};

class ContainersCommand final : public DaemonCommand {
 public:
  std::string_view name() const override { return "containers"; }
  std::string_view summary() const override { return "List the containers and where they run."; }
  std::string_view description() const override {
    return "Lists all containers that the daemon holds with the CPUs and memory nodes that they\n"
           "should run on. `explain` tells why.";
  }

 private:
  std::string_view Method() const override { return "Containers"; }
  std::string Table(const Reply& reply) const override {
    std::vector<TableRow> rows = {{"NAMESPACE", "POD", "CONTAINER", "QOS", "STATE", "CPUS",
                                   "EXCLUSIVE", "MEMS", "SHARES", "QUOTA", "POOL"}};
    for (const Reply& container : reply) {
      rows.push_back({Cell(container, "namespace"), Cell(container, "pod"), Cell(container, "name"),
                      Cell(container, "qos"), Cell(container, "state"), Cell(container, "cpus"),
                      Cell(container, "exclusive"), Cell(container, "mems"),
                      Cell(container, "shares"), Cell(container, "quota"),
                      Cell(container, "pool")});
    }
    return FormatTable(rows);
  }
};

// "hugepages-2Mi 4194304, example.com/nic 2"
std::string Amounts(const Reply& object) {
  std::string text;
  for (const auto& [name, amount] : object.items())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, amount.dump());
  return text;
}

class ExplainCommand final : public DaemonCommand {
 public:
  std::string_view name() const override { return "explain"; }
  std::string_view summary() const override { return "Tell why a container runs where it runs."; }
  std::string_view description() const override {
    return R"(Tells why a container runs where it runs: what it asked for, which rule decided, which
candidates there were and what they lacked.

  cri-resmgr-ctl explain web
  cri-resmgr-ctl explain default/web/nginx
  cri-resmgr-ctl explain 3f2a9c81)";
  }

 private:
  void DeclareMore(CommandLine& line) override {
    line.Arguments("[NAMESPACE/]POD[/CONTAINER]|ID", &what_);
  }
  std::string_view Method() const override { return "Explain"; }
  StatusOr<Reply> Request() const override {
    if (what_.size() != 1) {
      return InvalidArgument(
          "explain needs one argument: a pod, a container or the beginning of "
          "a container's id");
    }
    return Reply{{"what", what_.front()}};
  }

  std::string Table(const Reply& reply) const override {
    std::string text;
    for (const Reply& container : reply) {
      if (!text.empty()) text += '\n';
      text += fmt::format("{}/{}/{}\n", Cell(container, "namespace"), Cell(container, "pod"),
                          Cell(container, "name"));
      std::vector<TableRow> rows = {
          {"  id", Cell(container, "id")},
          {"  QoS class, state", Cell(container, "qos") + ", " + Cell(container, "state")},
          {"  asks for",
           fmt::format("{} CPU, limit {}; memory {}, limit {}", MilliCpus(container, "request"),
                       MilliCpus(container, "limit"), Gibibytes(container, "memoryRequest"),
                       Gibibytes(container, "memoryLimit"))},
          {"  runs on",
           fmt::format("CPUs {} (exclusive {}), memory nodes {}", Cell(container, "cpus"),
                       Cell(container, "exclusive"), Cell(container, "mems"))},
          {"  pool", Cell(container, "pool")},
          {"  because", Cell(container, "reason")},
          {"  in force", container.value("settled", false) ? "yes" : "not yet"},
      };
      const auto add = [&rows, &container](const char* title, const char* key) {
        const auto found = container.find(key);
        if (found == container.end() || found->empty()) return;
        if (found->is_string() && found->get_ref<const std::string&>().empty()) return;
        rows.push_back({title, found->is_string() ? found->get<std::string>() : Amounts(*found)});
      };
      if (const int64_t cold = container.value("coldStartMs", int64_t{0}); cold > 0) {
        rows.push_back({"  cold start",
                        fmt::format("memory nodes {} alone for the first {} s of its life",
                                    Cell(container, "mems"), static_cast<double>(cold) / 1000)});
      }
      add("  role", "role");
      add("  and for", "otherResources");
      add("  overhead of its pod", "podOverhead");
      add("  its pod as a whole", "podResources");
      text += FormatTable(rows);
      for (const Reply& hint : container.at("hints")) {
        text += fmt::format("  near {}: CPUs {}, memory nodes {}\n", Cell(hint, "source"),
                            Cell(hint, "cpus"), Cell(hint, "nodes"));
      }
      for (const Reply& line : container.at("candidates"))
        text += "    " + line.get<std::string>() + '\n';
    }
    return text;
  }

  std::vector<std::string> what_;
};

}  // namespace

std::unique_ptr<Command> MakeStatusCommand() {
  return std::make_unique<StatusCommand>();
}

std::unique_ptr<Command> MakePoliciesCommand() {
  return std::make_unique<PoliciesCommand>();
}

std::unique_ptr<Command> MakePoolsCommand() {
  return std::make_unique<PoolsCommand>();
}

std::unique_ptr<Command> MakeContainersCommand() {
  return std::make_unique<ContainersCommand>();
}

std::unique_ptr<Command> MakeExplainCommand() {
  return std::make_unique<ExplainCommand>();
}

}  // namespace resmgr
