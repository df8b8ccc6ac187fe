// SPDX-License-Identifier: Apache-2.0
#include "test/support/containerd/containerd.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

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

}  // namespace resmgr::test
