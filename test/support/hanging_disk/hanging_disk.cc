// SPDX-License-Identifier: Apache-2.0
#include "test/support/hanging_disk/hanging_disk.h"

#include <cerrno>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <unistd.h>

namespace resmgr::test {
namespace {

// More than a request of the largest write (MemoryFiles) with its headers.
constexpr size_t kRequestRoom = size_t{256} * 1024;

}  // namespace

HangingDisk::~HangingDisk() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  Wake();
  thread_.join();
  device_.Reset();
  ::umount2(directory_.c_str(), MNT_DETACH);
}

bool HangingDisk::MountOn(const std::string& directory) {
  device_.Reset(::open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK));
  wake_.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!device_.valid() || ::unshare(CLONE_NEWNS) != 0) return false;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  const std::string options =
      fmt::format("fd={},rootmode=40000,user_id=0,group_id=0", device_.get());
  if (::mount("disk", directory.c_str(), "fuse", 0, options.c_str()) != 0) return false;
  directory_ = directory;
  thread_ = std::thread([this] { Serve(); });
  return true;
}

void HangingDisk::Hang() {
  const std::lock_guard lock(mutex_);
  hangs_ = true;
  Wake();
}

void HangingDisk::Answer() {
  const std::lock_guard lock(mutex_);
  hangs_ = false;
  Wake();
}

void HangingDisk::Wake() {
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof(one));
}

bool HangingDisk::hangs() {
  const std::lock_guard lock(mutex_);
  return hangs_;
}

bool HangingDisk::WaitForCall(std::chrono::milliseconds timeout) {
  pollfd device{device_.get(), POLLIN, 0};
  return hangs() && ::poll(&device, 1, static_cast<int>(timeout.count())) == 1;
}

std::optional<std::string> HangingDisk::Content(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return files_.Content(path);
}

void HangingDisk::Serve() {
  std::vector<char> request(kRequestRoom);
  for (;;) {
    // While it hangs the requests stay in the kernel, where a caller that is killed gives its own
    // up; one that was read could not be given up any more.
    pollfd ready[2] = {{wake_.get(), POLLIN, 0}, {hangs() ? -1 : device_.get(), POLLIN, 0}};
    if (::poll(ready, 2, -1) < 0 && errno != EINTR) return;
    uint64_t woken = 0;
    (void)!::read(wake_.get(), &woken, sizeof(woken));
    const std::lock_guard lock(mutex_);
    if (ending_) return;
    if (hangs_ || (ready[1].revents & (POLLIN | POLLERR | POLLHUP)) == 0) continue;
    const ssize_t size = ::read(device_.get(), request.data(), request.size());
    if (size < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOENT)) continue;
    if (size <= 0) return;
    const std::string answer = files_.Answer({request.data(), static_cast<size_t>(size)});
    // The caller may be gone.
    if (!answer.empty()) (void)!::write(device_.get(), answer.data(), answer.size());
  }
}

}  // namespace resmgr::test
