// SPDX-License-Identifier: Apache-2.0
#include "test/integration/daemon_fixture.h"

#include <cstdlib>
#include <iterator>

#include "test/support/status_matchers.h"

namespace resmgr::test {

namespace {

FakeRuntime::Options RuntimeOptions(int cpus, bool record) {
  FakeRuntime::Options options;
  options.record = record;
  options.store.cpus = cpus;
  return options;
}

}  // namespace

DaemonTest::DaemonTest(int cpus, bool record) : runtime_(RuntimeOptions(cpus, record)) {}

DaemonTest::~DaemonTest() {
  if (HasFailure() && daemon_) std::printf("%s\n", daemon_->Log().c_str());
  daemon_.reset();
  runtime_.Stop();
}

std::vector<std::string> DaemonTest::Flags(const std::vector<std::string>& more) const {
  std::vector<std::string> flags = {"-relay-socket",   RelaySocket(),
                                    "-runtime-socket", RuntimeSocket(),
                                    "-relay-dir",      Path("state"),
                                    "-config-socket",  Path("config.sock"),
                                    "-admin-socket",   Path("admin.sock"),
                                    "-agent-socket",   "disabled",
                                    "-topology",       "synthetic:package:1 core:8 pu:1"};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

std::vector<std::string> DaemonTest::StaticFlags(const std::vector<std::string>& more) const {
  std::vector<std::string> flags = Flags({"-policy", "static", "-reserved-resources", "CPU=1"});
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

void DaemonTest::StartRuntime() {
  ASSERT_THAT(runtime_.Start(RuntimeSocket()), IsOk());
}

void DaemonTest::StartDaemon(const std::vector<std::string>& flags) {
  log_begin_ = TextOf(Path("daemon.log")).size();
  daemon_ = Must(DaemonProcess::Start(flags, Path("daemon.log")));
  started_ = daemon_.get();
}

void DaemonTest::StartBoth() {
  StartRuntime();
  if (HasFatalFailure()) return;
  StartDaemon(StaticFlags());
  if (HasFatalFailure()) return;
  // Until then the daemon asks the runtime too, and would meet the scripts that tests set for its
  // methods.
  ASSERT_TRUE(Logged("the runtime holds")) << daemon_->Log();
}

bool DaemonTest::Logged(std::string_view text) const {
  const size_t begin = daemon_.get() == started_ ? log_begin_ : 0;
  return Eventually([&] { return daemon_->Log().find(text, begin) != std::string::npos; });
}

CriClient DaemonTest::Direct(ApiVersion version) const {
  return CriClient(RuntimeSocket(), version);
}

CriClient DaemonTest::Relayed(ApiVersion version) const {
  return CriClient(RelaySocket(), version);
}

int64_t DaemonTest::ProcStatus(const std::string& key) {
  return test::ProcStatus(pid(), key);
}

int DaemonTest::OpenFiles() {
  const std::filesystem::directory_iterator files("/proc/" + std::to_string(pid()) + "/fd");
  return static_cast<int>(std::distance(begin(files), end(files)));
}

cri::CreateContainerRequest DaemonTest::CreateRequest(const std::string& pod_id,
                                                      const cri::PodSandboxConfig& pod,
                                                      const cri::ContainerConfig& container) {
  cri::CreateContainerRequest request;
  request.set_pod_sandbox_id(pod_id);
  *request.mutable_config() = container;
  *request.mutable_sandbox_config() = pod;
  return request;
}

DaemonTest::Running DaemonTest::Run(CriClient& client, const cri::PodSandboxConfig& pod,
                                    const cri::ContainerConfig& container) {
  Running running;
  const auto pod_id = client.RunPod(pod);
  EXPECT_THAT(pod_id, IsOk());
  if (!pod_id.ok()) return running;
  running.pod = *pod_id;
  const auto id = client.CreateContainer(running.pod, pod, container);
  EXPECT_THAT(id, IsOk());
  if (!id.ok()) return running;
  running.container = *id;
  EXPECT_THAT(client.StartContainer(running.container), IsOk());
  return running;
}

CpuSet DaemonTest::CpusAtRuntime(const std::string& container) {
  const auto found = runtime_.FindContainer(container);
  if (!found) return {};
  return CpuSet::Parse(found->resources.cpuset_cpus()).value_or(CpuSet());
}

}  // namespace resmgr::test
