// SPDX-License-Identifier: Apache-2.0
#include "test/integration/agent/claims_fixture.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "pkg/base/json.h"
#include "pkg/sys/files.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {

namespace fs = std::filesystem;

ClaimsTest::ClaimsTest() {
  fs::create_directories(Host("/var/lib/kubelet/plugins"));
  fs::create_directories(Host("/var/lib/kubelet/plugins_registry"));
  Configure("{Active: static, ReservedResources: {CPU: 1}}");
}

void ClaimsTest::Configure(const std::string& policy) {
  std::ofstream(Path("policy.yaml"))
      << "policy: " << policy
      << "\ndra: {Enable: true, Compatible: true, Metadata: " << (metadata_ ? "true" : "false")
      << "}\n";
}

std::vector<std::string> ClaimsTest::ClaimFlags(const std::vector<std::string>& more) const {
  std::vector<std::string> flags = {"-host-root", Path("host")};
  flags.insert(flags.end(), more.begin(), more.end());
  return PairFlags(flags);
}

Status ClaimsTest::ReleaseByOrder(const std::string& flag) const {
  std::vector<std::string> command = {Program("cri-resmgr-ctl"), "-socket", Path("admin.sock"),
                                      "release-claim"};
  if (!flag.empty()) command.push_back(flag);
  command.emplace_back("default/a");
  return RunProgram(command, Path("ctl.log"), kPatience);
}

void ClaimsTest::StartAll() {
  StartAgent();
  StartDaemonWithClaims();
  ASSERT_TRUE(Registered()) << daemon_->Log();
}

bool ClaimsTest::Registered() {
  return Eventually([this] {
    kubelet_.Look();
    return kubelet_.drivers().contains(kDriver);
  });
}

void ClaimsTest::KillWithFlags(const std::vector<std::string>& more) {
  daemon_->Kill();
  StartDaemon(ClaimFlags(more));
  ASSERT_TRUE(Registered());
}

void ClaimsTest::Allocate(const std::string& name, ApiServer::Allocation allocation) {
  if (allocation.driver.empty()) allocation.driver = kDriver;
  allocation.device = "cpudevnuma000";
  api_.SetClaim(name, "uid-" + name, allocation);
}

std::string ClaimsTest::ErrorOf(const std::string& name) {
  const auto response = kubelet_.Prepare(kDriver, {Claim(name)});
  return response.ok() ? response->claims().at("uid-" + name).error()
                       : std::string(Message(response.status()));
}

std::string ClaimsTest::CdiFile(const std::string& name) const {
  return Host("/var/run/cdi/dra.k8s.io-cpu_claim-uid-" + name + ".json");
}

CpuSet ClaimsTest::CpusOf(const std::string& name) const {
  const auto text = ReadFile(CdiFile(name), 4096);
  if (!text.ok()) return {};
  const auto spec = ParseJson(*text).value_or(Json::object());
  const std::string variable =
      spec["devices"].at(0)["containerEdits"]["env"].at(0).get<std::string>();
  return CpuSet::Parse(variable.substr(variable.find('=') + 1)).value_or(CpuSet());
}

Json ClaimsTest::Metadata(const std::string& name) const {
  const std::string path = Host(kMetadata) + "/uid-" + name + "/cpus/dra.cpu-metadata.json";
  const auto text = ReadFile(path, 65'536);
  return text.ok() ? ParseJson(*text).value_or(Json()) : Json();
}

CpuSet ClaimsTest::CpusByMetadata(const std::string& name) const {
  const Json metadata = Metadata(name);
  if (!metadata.is_object()) return {};
  const Json& device = metadata["requests"].at(0)["devices"].at(0);
  return CpuSet::Parse(device["attributes"]["dra.cpu/cpus"]["string"].get<std::string>())
      .value_or(CpuSet());
}

cri::ContainerConfig ClaimsTest::Carrier(const std::string& container, const std::string& claim) {
  cri::ContainerConfig config = MakeBestEffortContainer(container);
  config.add_cdi_devices()->set_name(DeviceOf(claim));
  return config;
}

std::string ClaimsTest::Capacity() const {
  const Json slice = api_.Slice(kSlice);
  if (!slice.is_object() || slice["spec"]["devices"].empty()) return "";
  return slice["spec"]["devices"].at(0)["capacity"]["dra.cpu/cpu"]["value"].get<std::string>();
}

int64_t ClaimsTest::Generation() const {
  const Json slice = api_.Slice(kSlice);
  return slice.is_object() ? slice["spec"]["pool"]["generation"].get<int64_t>() : 0;
}

std::string ClaimsTest::Slices() {
  std::vector<Json> slices = api_.objects().List(std::string(ApiServer::kSlices));
  std::erase_if(slices, [](const Json& slice) { return slice["spec"]["driver"] != kDriver; });
  std::string text;
  for (const Json& slice : slices) {
    const Json& spec = slice["spec"];
    text += fmt::format("{}{} {}/{}:", text.empty() ? "" : "; ",
                        spec["pool"]["generation"].get<int64_t>(),
                        spec["pool"]["resourceSliceCount"].get<int>(), slices.size());
    for (const Json& device : spec["devices"]) {
      text +=
          fmt::format("{} {} {}", text.ends_with(':') ? "" : ",", device["name"].get<std::string>(),
                      device["capacity"]["dra.cpu/cpu"]["value"].get<std::string>());
    }
  }
  return text;
}

bool ClaimsTest::SliceSays(int cpus) {
  return Eventually([&] { return Capacity() == std::to_string(cpus); });
}

std::string ClaimsTest::Logs() const {
  return AgentLog() + LastLines(Path("daemon.log"));
}

}  // namespace resmgr::test
