// SPDX-License-Identifier: Apache-2.0
#include "test/support/containerd/containerd.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/sys/unix_socket.h"
#include "test/support/cri_client/cri_client.h"

namespace resmgr::test {
namespace {

using std::chrono::seconds;

constexpr seconds kStartTimeout{30};
constexpr seconds kImportTimeout{60};
constexpr std::array<std::string_view, 2> kArchives{"pause.tar", "busybox.tar"};

std::filesystem::path ImageDirectory() {
  return std::filesystem::path(RESMGR_BINARY_DIR) / "test/support/images";
}

// The root of a containerd that has the images already, as the machines of test/machines have it;
// "" without one.
std::string PreparedRoot() {
  const char* root = std::getenv("RESMGR_CONTAINERD_ROOT");
  return root == nullptr ? "" : root;
}

bool InPath(std::string_view program) {
  const char* path = std::getenv("PATH");
  std::istringstream directories(path == nullptr ? "" : path);
  for (std::string directory; std::getline(directories, directory, ':');) {
    if (::access((std::filesystem::path(directory) / program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

// Facts about containers from the kernel, and from containerd's log.

// The text after `key` up to the end of the line or `stop`; "" where the key is not there.
std::string_view After(std::string_view text, std::string_view key, char stop) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find(stop));
}

// The weight to which runc converts shares for cgroup v2.
int64_t WeightOf(int64_t shares) {
  return 1 + ((shares - 2) * 9'999) / 262'142;
}

// Reads a file of cgroup v2: "max", "max 100000", "50000 100000"; 0 when there is none.
int64_t NumberOrMax(const std::string& text) {
  if (text.starts_with("max")) return -1;
  return ParseInt(text.substr(0, text.find(' '))).value_or(0);
}

}  // namespace

Status Containerd::Runnable() {
  if (::geteuid() != 0)
    return FailedPrecondition("containerd needs root, this is user {}", ::geteuid());
  for (const std::string_view program : {"containerd", "runc"}) {
    if (!InPath(program)) return FailedPrecondition("{} is not installed", program);
  }
  if (!PreparedRoot().empty()) return OkStatus();
  if (!InPath("ctr")) return FailedPrecondition("ctr is not installed");
  for (const std::string_view archive : kArchives) {
    if (!std::filesystem::exists(ImageDirectory() / archive)) {
      return FailedPrecondition("{} is not built (target test_images, needs busybox-static)",
                                (ImageDirectory() / archive).string());
    }
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<Containerd>> Containerd::Start(const std::filesystem::path& programs) {
  RESMGR_RETURN_IF_ERROR(Runnable());
  std::string directory = "/tmp/resmgr-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) {
    return Unavailable("cannot make a directory in /tmp: {}", std::strerror(errno));
  }
  const std::filesystem::path path = directory;
  RESMGR_ASSIGN_OR_RETURN(Cleaner cleaner,
                          Cleaner::Start({.directory = path,
                                          .cgroup = path.filename(),
                                          .runc_root = "runc/k8s.io",
                                          .tasks = "state/io.containerd.runtime.v2.task/k8s.io"}));
  std::unique_ptr<Containerd> containerd(new Containerd(path, programs, std::move(cleaner)));
  RESMGR_RETURN_IF_ERROR(containerd->WriteConfig());
  if (const std::string prepared = PreparedRoot(); !prepared.empty()) {
    RESMGR_RETURN_IF_ERROR(
        RunProgram({"cp", "-a", prepared, path / "root"}, path / "import.log", kImportTimeout));
    RESMGR_RETURN_IF_ERROR(containerd->Restart());
    return containerd;
  }
  RESMGR_RETURN_IF_ERROR(containerd->Restart());
  RESMGR_RETURN_IF_ERROR(containerd->ImportImages());
  return containerd;
}

Containerd::~Containerd() {
  Kill();
}

std::string Containerd::CgroupParent(QosClass qos, std::string_view uid, CgroupNames names) const {
  std::vector<std::string> path = {"kubepods"};
  if (qos == QosClass::kBurstable) path.emplace_back("burstable");
  if (qos == QosClass::kBestEffort) path.emplace_back("besteffort");
  path.push_back(fmt::format("pod{}", uid));
  if (names == CgroupNames::kCgroupfs) {
    return fmt::format("/{}/{}", CgroupName(), fmt::join(path, "/"));
  }
  // A slice is called after all those around it, which dashes divide.
  std::replace(path.back().begin(), path.back().end(), '-', '_');
  std::string parent = fmt::format("/{}", CgroupName());
  std::string slice;
  for (const std::string& name : path) {
    if (!slice.empty()) slice += '-';
    slice += name;
    parent += fmt::format("/{}.slice", slice);
  }
  return parent;
}

void Containerd::Kill() {
  process_.reset();
}

std::vector<std::string> Containerd::Command(std::vector<std::string> argv) const {
  if (programs_.empty()) return argv;
  const char* path = std::getenv("PATH");
  argv.insert(argv.begin(),
              {"env", fmt::format("PATH={}:{}", programs_.string(), path == nullptr ? "" : path)});
  return argv;
}

Status Containerd::Restart() {
  Kill();
  RESMGR_ASSIGN_OR_RETURN(
      process_, ChildProcess::Start(Command({"containerd", "-c", directory_ / "config.toml"}),
                                    directory_ / "containerd.log"));
  Status ready = WaitUntil("containerd listens", kStartTimeout, [&] {
    return !process_->Running() || ConnectUnix(socket().string()).ok();
  });
  if (ready.ok() && process_->Running()) {
    CriClient client(socket());
    const cri::VersionRequest request;
    cri::VersionResponse response;
    ready = WaitUntil("containerd serves CRI", kStartTimeout, [&] {
      return !process_->Running() || client.Unary("Version", request, &response).ok();
    });
  }
  if (ready.ok() && !process_->Running()) ready = Unavailable("containerd ended");
  return ready.ok() ? ready : Annotate(ready, Log());
}

Status Containerd::WriteConfig() const {
  constexpr std::string_view kConfig = R"(version = 2
root = "{0}/root"
state = "{0}/state"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "{0}/containerd.sock"
[ttrpc]
  address = "{0}/containerd.ttrpc"
# On a busy machine a shim may take longer than the usual 5 s to answer a containerd that has started
# again, which would then end its containers.
[timeouts]
  "io.containerd.timeout.shim.load" = "60s"
  "io.containerd.timeout.shim.cleanup" = "60s"
  "io.containerd.timeout.task.state" = "60s"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{1}"
  # Without CAP_SYS_RESOURCE runc cannot lower oom_score_adj and fails.
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
  conf_dir = "{0}/cni"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  BinaryName = "runc"
  Root = "{0}/runc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.second]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.second.options]
  BinaryName = "runc"
  Root = "{0}/runc"
[plugins."io.containerd.nri.v1.nri"]
  disable = false
  socket_path = "{0}/nri.sock"
  plugin_path = "{0}/nri-plugins"
  plugin_config_path = "{0}/nri-config"
)";
  std::ofstream file(directory_ / "config.toml");
  file << fmt::format(kConfig, directory_.string(), kPauseImage);
  file.close();
  return file ? OkStatus() : Unavailable("cannot write into {}", directory_.string());
}

Status Containerd::ImportImages() const {
  for (const std::string_view archive : kArchives) {
    RESMGR_RETURN_IF_ERROR(RunProgram(Command({"ctr", "-a", socket(), "-n", "k8s.io", "images",
                                               "import", ImageDirectory() / archive}),
                                      directory_ / "import.log", kImportTimeout));
  }
  return OkStatus();
}

std::string Containerd::ProcessOf(const std::string& container_id) const {
  const std::string state = TextOf(directory_ / "runc/k8s.io" / container_id / "state.json");
  return std::string(After(state, R"("init_process_pid":)", ','));
}

std::optional<CpuSet> Containerd::AllowedCpus(const std::string& container_id) const {
  const std::string pid = ProcessOf(container_id);
  if (pid.empty()) return std::nullopt;
  const std::filesystem::path process = std::filesystem::path("/proc") / pid;

  // Between create and start runc itself holds the container's place; ended, it has no command
  // line.
  const std::string command = TextOf(process / "cmdline");
  if (command.empty() || command.starts_with(std::string_view("runc\0init", 9)))
    return std::nullopt;
  const std::string status = TextOf(process / "status");
  auto cpus = CpuSet::Parse(After(status, "\nCpus_allowed_list:\t", '\n'));
  if (!cpus.ok() || cpus->empty()) return std::nullopt;
  return *cpus;
}

std::optional<CpuSet> Containerd::AwaitAllowedCpus(const std::string& container_id) const {
  std::optional<CpuSet> cpus;
  const Status runs = WaitUntil("the container's process runs", std::chrono::seconds(20), [&] {
    cpus = AllowedCpus(container_id);
    return cpus.has_value();
  });
  return runs.ok() ? cpus : std::nullopt;
}

bool Containerd::EndProcess(const std::string& container_id) const {
  const auto pid = ParseInt(ProcessOf(container_id));
  return pid.value_or(0) > 1 && ::kill(static_cast<pid_t>(*pid), SIGKILL) == 0;
}

std::string Containerd::CgroupFile(const std::string& container_id, std::string_view file) const {
  std::string text = TextOf(CgroupPath(container_id, file));
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string Containerd::CgroupPath(const std::string& container_id, std::string_view file) const {
  const std::string pid = ProcessOf(container_id);
  if (pid.empty()) return "";
  // "6:cpuset:/a/b", one line for each hierarchy; "0::/a/b" for the one of cgroup v2.
  std::istringstream lines(TextOf(std::filesystem::path("/proc") / pid / "cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path =
        fmt::format("/sys/fs/cgroup/{}{}/{}", controllers, line.substr(second + 1), file);
    if (!TextOf(path).empty()) return path;
  }
  return "";
}

// Under cgroup v2 an empty list means the parent's.
std::string Containerd::CgroupCpus(const std::string& container_id) const {
  std::string own = CgroupFile(container_id, "cpuset.cpus");
  return own.empty() ? CgroupFile(container_id, "cpuset.cpus.effective") : own;
}

std::string Containerd::CgroupMems(const std::string& container_id) const {
  std::string own = CgroupFile(container_id, "cpuset.mems");
  return own.empty() ? CgroupFile(container_id, "cpuset.mems.effective") : own;
}

int64_t Containerd::CgroupShares(const std::string& container_id, int64_t expected) const {
  const auto shares = ParseInt(CgroupFile(container_id, "cpu.shares"));
  if (shares) return *shares;
  const auto weight = ParseInt(CgroupFile(container_id, "cpu.weight"));
  if (!weight) return 0;
  if (WeightOf(expected) == *weight) return expected;
  return 2 + ((*weight - 1) * 262'142 + 9'998) / 9'999;
}

int64_t Containerd::CgroupQuota(const std::string& container_id) const {
  const auto quota = ParseInt(CgroupFile(container_id, "cpu.cfs_quota_us"));
  return quota ? *quota : NumberOrMax(CgroupFile(container_id, "cpu.max"));
}

int64_t Containerd::CgroupMemoryLimit(const std::string& container_id) const {
  constexpr int64_t kNoMachine = int64_t{1} << 60;
  const auto limit = ParseInt(CgroupFile(container_id, "memory.limit_in_bytes"));
  if (limit) return *limit < kNoMachine ? *limit : -1;
  return NumberOrMax(CgroupFile(container_id, "memory.max"));
}

size_t Containerd::Updates(std::string_view container_id) const {
  const std::string log = TextOf(directory_ / "containerd.log");
  const std::string line = fmt::format("UpdateContainerResources for \\\"{}", container_id);
  size_t count = 0;
  for (size_t at = log.find(line); at != std::string::npos; at = log.find(line, at + 1)) {
    const size_t end = log.find('\n', at);
    if (log.substr(at, end - at).find(" with Linux: ") != std::string::npos) ++count;
  }
  return count;
}

}  // namespace resmgr::test
