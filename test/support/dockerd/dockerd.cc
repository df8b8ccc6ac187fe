// SPDX-License-Identifier: Apache-2.0
#include "test/support/dockerd/dockerd.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "pkg/sys/unix_socket.h"

namespace resmgr::test {
namespace {

using std::chrono::seconds;

constexpr seconds kStartTimeout{30};
constexpr seconds kLoadTimeout{60};
constexpr std::array<std::string_view, 2> kArchives{"pause.tar", "busybox.tar"};
// Debian's path: not all users have that folder in PATH.
constexpr const char* kDockerd = "/usr/sbin/dockerd";
constexpr const char* kDocker = "/usr/bin/docker";

std::filesystem::path ImageDirectory() {
  return std::filesystem::path(RESMGR_BINARY_DIR) / "test/support/images";
}

std::string DockerdProgram() {
  return ::access(kDockerd, X_OK) == 0 ? kDockerd : "dockerd";
}

}  // namespace

std::string DockerProgram() {
  return ::access(kDocker, X_OK) == 0 ? kDocker : "docker";
}

StatusOr<std::unique_ptr<Dockerd>> Dockerd::Start(const Options& options) {
  if (::geteuid() != 0) {
    return FailedPrecondition("dockerd needs root, this is user {}", ::geteuid());
  }
  std::string name = "/tmp/resmgr-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    return Unavailable("cannot make a directory in /tmp: {}", std::strerror(errno));
  }
  const std::filesystem::path directory = name;
  RESMGR_ASSIGN_OR_RETURN(
      Cleaner cleaner,
      Cleaner::Start({.directory = directory,
                      .cgroup = directory.filename(),
                      .runc_root = "exec/runtime-runc/moby",
                      .tasks = "exec/containerd/daemon/io.containerd.runtime.v2.task/moby"}));
  std::unique_ptr<Dockerd> dockerd(new Dockerd(directory, std::move(cleaner), options));
  RESMGR_RETURN_IF_ERROR(dockerd->Restart());
  RESMGR_RETURN_IF_ERROR(dockerd->LoadImages());
  return dockerd;
}

Status Dockerd::Restart() {
  Kill();
  // A dockerd that ends its containerd lets it write its coverage into the directory for such
  // files.
  std::vector<std::string> argv = {
      "env", "TMPDIR=" + directory_.string(), DockerdProgram(), "--data-root", directory_ / "root",
      "--exec-root", directory_ / "exec", "-p", directory_ / "pid",
      // The machine's own configuration files are not used.
      "--config-file", directory_ / "daemon.json", "-H", "unix://" + socket().string(),
      "--bridge=none", "--iptables=false", "--ip-forward=false", "--ip-masq=false",
      "--live-restore",
      // Less needs CAP_SYS_RESOURCE.
      "--oom-score-adjust=0", "--cgroup-parent", CgroupParent()};
  if (options_.debug) argv.emplace_back("--debug");
  std::error_code ignored;
  // Removes files of a killed dockerd. A containerd that was not reaped yet would count as running.
  std::filesystem::remove(directory_ / "pid", ignored);
  std::filesystem::remove(directory_ / "exec" / "containerd" / "containerd.pid", ignored);
  std::filesystem::remove(socket(), ignored);
  std::ofstream(directory_ / "daemon.json") << "{}";
  RESMGR_ASSIGN_OR_RETURN(process_, ChildProcess::Start(argv, directory_ / "dockerd.log"));
  Status ready = WaitUntil("dockerd listens", kStartTimeout, [&] {
    return !process_->Running() || ConnectUnix(socket().string()).ok();
  });
  if (ready.ok() && !process_->Running()) {
    ready = FailedPrecondition("{} does not run (Debian: docker.io)", DockerdProgram());
  }
  return ready.ok() ? ready : Annotate(ready, LastLines(directory_ / "dockerd.log"));
}

Status Dockerd::LoadImages() const {
  for (const std::string_view archive : kArchives) {
    RESMGR_RETURN_IF_ERROR(RunProgram({DockerProgram(), "-H", "unix://" + socket().string(), "load",
                                       "-i", ImageDirectory() / archive},
                                      directory_ / "load.log", kLoadTimeout));
  }
  return OkStatus();
}

}  // namespace resmgr::test
