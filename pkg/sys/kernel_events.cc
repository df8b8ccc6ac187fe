// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/kernel_events.h"

#include <array>
#include <cerrno>
#include <utility>

#include <linux/filter.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include "pkg/sys/files.h"

namespace resmgr {
namespace {

constexpr unsigned kGroupOfKernel = 1;  // netlink group of the kernel; 2 is udev's
constexpr int kMostPerTurn = 64;

// The first four bytes in network order, as a socket filter reads them.
constexpr uint32_t Word(std::string_view text) {
  uint32_t word = 0;
  for (size_t i = 0; i < 4; ++i)
    word = word << 8 | static_cast<unsigned char>(text[i]);
  return word;
}

// Passes only "offline@..." and "online@...", which devices of CPUs and memory blocks alone send.
Status AttachFilter(int socket) {
  std::array<sock_filter, 5> code{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, Word("offl"), 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, Word("onli"), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
      BPF_STMT(BPF_RET | BPF_K, 0),
  }};
  const sock_fprog filter{.len = code.size(), .filter = code.data()};
  if (setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) != 0)
    return ErrnoStatus(errno, "cannot filter events of the kernel");
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<KernelEvents>> KernelEvents::Listen(
    EventLoop& loop, std::function<void(const KernelEvent&)> tell) {
  UniqueFd socket(
      ::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
  if (!socket.valid()) return ErrnoStatus(errno, "cannot listen to events of the kernel");
  // Attached before bind, so that no unfiltered event is queued.
  RESMGR_RETURN_IF_ERROR(AttachFilter(socket.get()));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = kGroupOfKernel;
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return ErrnoStatus(errno, "cannot listen to events of the kernel");
  std::unique_ptr<KernelEvents> events(new KernelEvents(std::move(socket), std::move(tell)));
  events->watch_ = loop.Watch(events->socket_.get(), EventLoop::kReadable,
                              [self = events.get()](int) { self->Read(); });
  return events;
}

std::optional<KernelEvent> KernelEvents::Parse(std::string_view datagram) {
  const std::string_view line = datagram.substr(0, datagram.find('\0'));
  const size_t at = line.find('@');
  if (at == 0 || at == std::string_view::npos || at + 1 == line.size()) return std::nullopt;
  return KernelEvent{.action = line.substr(0, at), .path = line.substr(at + 1)};
}

void KernelEvents::Read() {
  std::array<char, 4096> buffer;  // the kernel sends 2 KiB at most
  for (int i = 0; i < kMostPerTurn; ++i) {
    sockaddr_nl sender{};
    socklen_t size = sizeof(sender);
    const ssize_t read = recvfrom(socket_.get(), buffer.data(), buffer.size(), 0,
                                  reinterpret_cast<sockaddr*>(&sender), &size);
    // ENOBUFS: events were lost, but later ones can be read.
    if (read < 0 && (errno == EINTR || errno == ENOBUFS)) continue;
    if (read <= 0) return;
    if (sender.nl_pid != 0) continue;  // only messages of the kernel count
    if (const auto event = Parse({buffer.data(), static_cast<size_t>(read)})) tell_(*event);
  }
}

}  // namespace resmgr
