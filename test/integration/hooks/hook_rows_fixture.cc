// SPDX-License-Identifier: Apache-2.0
#include "test/integration/hooks/hook_rows_fixture.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "test/support/programs/programs.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {

std::string HookRowsTest::FileText(const std::string& socket, const std::string& points,
                                   const std::string& more) {
  return R"({"remote-endpoint": ")" + socket + R"(", "runtime-hooks": [)" + points + "]" + more +
         "}";
}

void HookRowsTest::PutFile(const std::string& name, const std::string& text) {
  std::filesystem::create_directories(HookDirectory());
  const std::string written = Path("new-" + name);
  std::ofstream(written) << text;
  std::filesystem::rename(written, HookDirectory() + "/" + name);
}

std::unique_ptr<ChildProcess> HookRowsTest::Serve(const std::string& name,
                                                  const std::vector<std::string>& behaviour) {
  std::vector<std::string> argv = {RESMGR_BINARY_DIR "/test/support/hook_server/resmgr-hook-server",
                                   "-socket", Path(name + ".sock"), "-calls", CallsOf(name)};
  argv.insert(argv.end(), behaviour.begin(), behaviour.end());
  const std::string log = Path(name + ".log");
  std::filesystem::remove(log);
  std::unique_ptr<ChildProcess> process = Must(ChildProcess::Start(argv, log));
  EXPECT_TRUE(Eventually([&] { return TextOf(log).find("serving") != std::string::npos; }))
      << TextOf(log);
  return process;
}

void HookRowsTest::Stop(ChildProcess& server) {
  server.Signal(SIGSTOP);
  const auto stopped = [](const std::filesystem::path& thread) {
    // "PID (NAME) STATE ..."
    const std::string stat = TextOf(thread / "stat");
    const size_t name_end = stat.rfind(") ");
    return name_end == std::string::npos || stat[name_end + 2] == 'T';
  };
  ASSERT_TRUE(Eventually([&] {
    const std::filesystem::directory_iterator threads("/proc/" + std::to_string(server.pid()) +
                                                      "/task");
    return std::all_of(begin(threads), end(threads), stopped);
  }));
}

void HookRowsTest::StartNode(const std::vector<std::string>& more) {
  StartRuntime();
  if (!HasFatalFailure()) StartDaemonWithHooks(more);
}

void HookRowsTest::StartDaemonWithHooks(const std::vector<std::string>& more) {
  std::filesystem::create_directories(HookDirectory());
  std::vector<std::string> flags = {"-hook-dir", HookDirectory()};
  flags.insert(flags.end(), more.begin(), more.end());
  StartDaemon(Flags(flags));
}

void HookRowsTest::AwaitServers(size_t count) {
  ASSERT_TRUE(Eventually([&] {
    const auto plugins = nlohmann::json::parse(Ctl({"plugins"}), nullptr, false);
    if (!plugins.is_array() || plugins.size() != count) return false;
    for (const auto& plugin : plugins)
      if (plugin.value("state", "") != "ready") return false;
    return true;
  })) << Ctl({"plugins"});
}

Status HookRowsTest::SetConfig(const std::string& text) const {
  const std::string file = Path("set.yaml");
  std::ofstream(file) << text;
  return RunProgram(
      {Program("cri-resmgr-ctl"), "-socket", Path("admin.sock"), "config", "set", file},
      Path("set.out"), kPatience);
}

std::string HookRowsTest::Ctl(const std::vector<std::string>& command) const {
  const std::string output = Path("ctl.out");
  std::filesystem::remove(output);
  std::vector<std::string> argv = {Program("cri-resmgr-ctl"), "-socket", Path("admin.sock")};
  argv.insert(argv.end(), command.begin(), command.end());
  argv.insert(argv.end(), {"-o", "json"});
  return RunProgram(argv, output, kPatience).ok() ? TextOf(output) : "";
}

size_t HookRowsTest::KnownContainers() const {
  const auto known = nlohmann::json::parse(Ctl({"explain", "-n", "default"}), nullptr, false);
  return known.is_array() ? known.size() : 0;
}

std::vector<std::string> HookRowsTest::Calls(const std::string& server,
                                             std::string_view hook) const {
  std::vector<std::string> calls;
  std::ifstream file(CallsOf(server));
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string name;
    std::string hex;
    fields >> name >> hex;
    if (name != hook) continue;
    std::string& bytes = calls.emplace_back();
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
      bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return calls;
}

bool HookRowsTest::AskedWithin(const std::string& server, std::string_view hook, size_t count,
                               milliseconds time) const {
  return Eventually([&] { return Calls(server, hook).size() >= count; }, time);
}

cri::ContainerConfig HookRowsTest::Created() {
  const auto calls = runtime_.Calls("CreateContainer");
  cri::CreateContainerRequest request;
  EXPECT_TRUE(!calls.empty() && !calls.back().messages.empty() &&
              request.ParseFromString(calls.back().messages[0]));
  return request.config();
}

}  // namespace resmgr::test
