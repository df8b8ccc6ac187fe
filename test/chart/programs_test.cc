// SPDX-License-Identifier: Apache-2.0
// The programs, flags and probes of the chart's pods exist, and the programs accept the chart's
// configuration.
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "pkg/sys/files.h"
#include "test/chart/rendered.h"

namespace resmgr::test {
namespace {

using testing::Contains;
using testing::HasSubstr;

const std::set<std::string> kPrograms = {"cri-resmgr", "cri-resmgr-agent", "cri-resmgr-webhook"};
constexpr char kInstaller[] = "install-on-node";
constexpr char kMachine[] = "-topology 'synthetic:package:2 numa:2 core:8 pu:2'";

std::set<std::string> FlagsOf(const std::string& program) {
  const std::string help = RunProgram(program, "-help").text;
  std::set<std::string> flags;
  const std::regex line("(^|\n)  -([a-z0-9-]+)");
  for (std::sregex_iterator at(help.begin(), help.end(), line); at != std::sregex_iterator(); ++at)
    flags.insert((*at)[2]);
  return flags;
}

// "-name=value" without its value.
std::string FlagName(const std::string& argument) {
  EXPECT_THAT(argument, testing::StartsWith("-"));
  return argument.substr(1, argument.find('=') - 1);
}

std::string Quoted(const std::vector<std::string>& arguments) {
  std::string all;
  for (const std::string& argument : arguments)
    all += fmt::format("'{}' ", argument);
  return all;
}

// Calls a function with sample, workload and container, for each of them.
template <typename Function>
void ForEachContainer(const Function& function) {
  for (const std::string& sample : ChartSamples()) {
    for (const ConfigNode& workload : Workloads(Rendered(sample)))
      for (const ConfigNode& container : Containers(workload))
        function(fmt::format("{}: {}, {}", sample, NameOf(workload), At(container, "name").text),
                 workload, container);
  }
}

TEST(ChartProgramsTest, FlagsAreThoseOfThePrograms) {
  std::set<std::string> seen;
  ForEachContainer([&](const std::string& what, const ConfigNode&, const ConfigNode& container) {
    const std::string name = ProgramOf(container);
    seen.insert(name);
    const bool installs = name == kInstaller;
    ASSERT_TRUE(installs || kPrograms.contains(name)) << what << " starts " << name;
    // The installer gives its flags to the daemon.
    const std::string program = installs ? "cri-resmgr" : name;
    const std::set<std::string> flags = FlagsOf(program);
    ASSERT_GE(flags.size(), 7U);
    const std::vector<std::string> arguments = Texts(At(container, "args"));
    for (const std::string& argument : arguments)
      EXPECT_THAT(flags, Contains(FlagName(argument))) << what;
    // The values are valid, too: wrong ones would end the program before it prints its version.
    const Output output = RunProgram(program, Quoted(arguments) + "-version");
    EXPECT_EQ(output.status, 0) << what << ": " << output.text;
  });
  EXPECT_THAT(seen, testing::ElementsAre("cri-resmgr", "cri-resmgr-agent", "cri-resmgr-webhook",
                                         kInstaller));
}

TEST(ChartProgramsTest, TheDaemonsCommandLinesAreGood) {
  int daemons = 0;
  ForEachContainer([&](const std::string& what, const ConfigNode&, const ConfigNode& container) {
    const bool installs =
        ProgramOf(container) == kInstaller && !At(container, "args").items.empty();
    if (ProgramOf(container) != "cri-resmgr" && !installs) return;
    const Output output =
        RunProgram("cri-resmgr", fmt::format("{} {} -relay-dir /nonexistent -check-config",
                                             Quoted(Texts(At(container, "args"))), kMachine));
    EXPECT_EQ(output.status, 0) << what << ": " << output.text;
    ++daemons;
  });
  EXPECT_EQ(daemons, 4);
}

TEST(ChartProgramsTest, TheInstallerHasItsCommands) {
  const auto script = ReadFile(RESMGR_SOURCE_DIR "/images/install-on-node", size_t{1} << 20);
  ASSERT_TRUE(script.ok());
  ForEachContainer([&](const std::string& what, const ConfigNode&, const ConfigNode& container) {
    if (ProgramOf(container) != kInstaller) return;
    const std::string command = At(container, "command/1").text;
    EXPECT_THAT(*script, HasSubstr(fmt::format("\n    {}) ", command))) << what;
    EXPECT_THAT(*script, HasSubstr("# usage: install-on-node install")) << what;
  });
}

TEST(ChartProgramsTest, ProbesAskForWhatIsServed) {
  int probes = 0;
  ForEachContainer([&](const std::string& what, const ConfigNode&, const ConfigNode& container) {
    for (const char* const kind : {"livenessProbe", "readinessProbe"}) {
      const ConfigNode probe = At(container, kind);
      if (probe.entries.empty()) continue;
      ++probes;
      const ConfigNode get = At(probe, "httpGet");
      if (get.entries.empty()) {
        const std::vector<std::string> command = Texts(At(probe, "exec/command"));
        ASSERT_EQ(command.size(), 3U) << what;
        EXPECT_THAT(FlagsOf(command[0]), Contains(FlagName(command[1]))) << what;
        const Output output = RunProgram(command[0], command[1] + " " + command[2] + " -version");
        EXPECT_EQ(output.status, 0) << what << ": " << output.text;
        continue;
      }
      // docs/metrics.md, webhook/README.md.
      const bool webhook = ProgramOf(container) == "cri-resmgr-webhook";
      const bool alive = std::string(kind) == "livenessProbe";
      EXPECT_EQ(At(get, "path").text, webhook || alive ? "/healthz" : "/readyz") << what;
      const ConfigNode port = At(container, "ports/0");
      EXPECT_EQ(At(get, "port").text, At(port, webhook ? "name" : "containerPort").text) << what;
      if (webhook) {
        EXPECT_EQ(At(get, "scheme").text, "HTTPS");
        EXPECT_THAT(Texts(At(container, "args")),
                    Contains("-port=" + At(port, "containerPort").text));
      }
    }
  });
  EXPECT_EQ(probes, 17);
}

// The probes use the address on which the daemon listens.
TEST(ChartProgramsTest, TheMetricsAddressIsProbed) {
  int daemons = 0;
  for (const std::string& sample : ChartSamples()) {
    for (const ConfigNode& workload : Workloads(Rendered(sample))) {
      std::string address;
      ConfigNode get;
      for (const ConfigNode& container : Containers(workload)) {
        for (const std::string& argument : Texts(At(container, "args"))) {
          if (FlagName(argument) == "metrics-address") {
            address = argument.substr(argument.find('=') + 1);
          }
        }
        get = At(container, "readinessProbe/httpGet");
      }
      if (address.empty() || get.entries.empty()) continue;
      ++daemons;
      EXPECT_EQ(address, At(get, "host").text + ":" + At(get, "port").text) << sample;
      // A network of its own would lack the node's loopback.
      EXPECT_TRUE(At(workload, "spec/template/spec/hostNetwork").text == "true" ||
                  At(get, "host").text.empty())
          << sample;
    }
  }
  EXPECT_EQ(daemons, 3);
}

TEST(ChartProgramsTest, ConfigMapsAreTaken) {
  namespace fs = std::filesystem;
  const fs::path file = fs::path(testing::TempDir()) / fmt::format("chart-{}.yaml", getpid());
  int maps = 0;
  for (const std::string& sample : ChartSamples()) {
    for (const ConfigNode& map : AllOfKind(Rendered(sample), "ConfigMap")) {
      const std::string name = At(map, "metadata/name").text;
      if (name == "cri-resmgr-dashboard") continue;
      EXPECT_TRUE(std::regex_match(
          name, std::regex("cri-resmgr-config\\.(default|group\\.[a-z]+|node\\.[a-z0-9-]+)")))
          << name;
      std::ofstream config(file);
      for (const ConfigNode::Entry& section : At(map, "data").entries) {
        const std::string text = std::regex_replace(section.value.text, std::regex("\n"), "\n  ");
        config << section.key << ":\n  " << text << "\n";
      }
      config.close();
      const Output output = RunProgram(
          "cri-resmgr", fmt::format("-config {} {} -relay-dir /nonexistent -check-config",
                                    file.string(), kMachine));
      EXPECT_EQ(output.status, 0) << sample << ": " << name << ": " << output.text;
      ++maps;
    }
  }
  EXPECT_EQ(maps, 6);
  fs::remove(file);
}

}  // namespace
}  // namespace resmgr::test
