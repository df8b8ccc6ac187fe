// SPDX-License-Identifier: Apache-2.0
#include "test/support/hanging_disk/hanging_disk.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

namespace resmgr::test {
namespace {

// More than a request of the largest write (MemoryFiles) with its headers.
constexpr size_t kRequestRoom = size_t{256} * 1024;

constexpr uint32_t kMaxWrite = 128 * 1024;
constexpr uint32_t kTypeBits = S_IFMT;

template <typename Part>
std::string Bytes(const Part& part) {
  return {reinterpret_cast<const char*>(&part), sizeof(part)};
}

// The structure that the bytes begin with, which is taken off them.
template <typename Part>
Part Take(std::string_view& bytes) {
  Part part{};
  std::memcpy(&part, bytes.data(), std::min(bytes.size(), sizeof(part)));
  bytes.remove_prefix(std::min(bytes.size(), sizeof(part)));
  return part;
}

// A name with a zero byte behind it.
std::string_view TakeName(std::string_view& bytes) {
  const std::string_view name = bytes.substr(0, bytes.find('\0'));
  bytes.remove_prefix(std::min(bytes.size(), name.size() + 1));
  return name;
}

// Writes pass the kernel's cache, and closing asks nothing.
std::string OpenFile() {
  fuse_open_out out{};
  out.open_flags = FOPEN_DIRECT_IO | FOPEN_NOFLUSH;
  return Bytes(out);
}

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

MemoryFiles::MemoryFiles() {
  nodes_.push_back({.mode = S_IFDIR | 0755});
}

std::string MemoryFiles::Answer(std::string_view request) {
  const auto header = Take<fuse_in_header>(request);
  const bool silent = header.opcode == FUSE_FORGET || header.opcode == FUSE_BATCH_FORGET ||
                      header.opcode == FUSE_INTERRUPT;
  if (silent) return "";
  const Result result = Handle(header, request);
  fuse_out_header out{};
  out.len = static_cast<uint32_t>(sizeof(out) + result.body.size());
  out.error = result.error;
  out.unique = header.unique;
  return Bytes(out) + result.body;
}

MemoryFiles::Result MemoryFiles::Handle(const fuse_in_header& header, std::string_view body) {
  const uint64_t id = header.nodeid;
  switch (header.opcode) {
    case FUSE_INIT:
      return Init(body);
    case FUSE_LOOKUP:
      return LookUp(id, TakeName(body));
    case FUSE_GETATTR: {
      fuse_attr_out out{};
      out.attr = AttributesOf(id);
      return {.body = Bytes(out)};
    }
    case FUSE_SETATTR:
      return SetAttributes(id, body);
    case FUSE_MKDIR: {
      const auto in = Take<fuse_mkdir_in>(body);
      return Make(id, TakeName(body), S_IFDIR | in.mode, false);
    }
    case FUSE_CREATE: {
      const auto in = Take<fuse_create_in>(body);
      return Make(id, TakeName(body), S_IFREG | in.mode, true);
    }
    case FUSE_RENAME: {
      const auto in = Take<fuse_rename_in>(body);
      return Rename(id, in.newdir, body);
    }
    case FUSE_RENAME2: {
      const auto in = Take<fuse_rename2_in>(body);
      return in.flags == 0 ? Rename(id, in.newdir, body) : Result{.error = -EINVAL};
    }
    case FUSE_UNLINK:
    case FUSE_RMDIR:
      return Remove(id, TakeName(body));
    case FUSE_OPEN:
      return {.body = OpenFile()};
    case FUSE_OPENDIR:
      return {.body = Bytes(fuse_open_out{})};
    case FUSE_READDIR:
      return List(id, body);
    case FUSE_READ:
      return Read(id, body);
    case FUSE_WRITE:
      return Write(id, body);
    case FUSE_STATFS:
      return {.body = Bytes(fuse_statfs_out{})};
    case FUSE_FSYNC:
    case FUSE_FSYNCDIR:
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
      return {};
    default:
      return {.error = -ENOSYS};
  }
}

MemoryFiles::Result MemoryFiles::Init(std::string_view body) const {
  const auto in = Take<fuse_init_in>(body);
  fuse_init_out out{};
  out.major = FUSE_KERNEL_VERSION;
  out.minor = std::min<uint32_t>(in.minor, FUSE_KERNEL_MINOR_VERSION);
  out.max_write = kMaxWrite;
  out.time_gran = 1;
  return {.body = Bytes(out)};
}

fuse_attr MemoryFiles::AttributesOf(uint64_t id) const {
  fuse_attr attributes{};
  attributes.ino = id;
  attributes.mode = At(id).mode;
  attributes.size = At(id).content.size();
  attributes.nlink = 1;
  attributes.blksize = 4096;
  return attributes;
}

std::string MemoryFiles::EntryOf(uint64_t id) const {
  fuse_entry_out out{};
  out.nodeid = id;
  out.attr = AttributesOf(id);
  return Bytes(out);
}

MemoryFiles::Result MemoryFiles::LookUp(uint64_t parent, std::string_view name) const {
  const auto found = At(parent).entries.find(name);
  if (found == At(parent).entries.end()) return {.error = -ENOENT};
  return {.body = EntryOf(found->second)};
}

MemoryFiles::Result MemoryFiles::Make(uint64_t parent, std::string_view name, uint32_t mode,
                                      bool open) {
  const uint64_t id = nodes_.size() + 1;
  if (!At(parent).entries.emplace(name, id).second) return {.error = -EEXIST};
  nodes_.push_back({.mode = mode});
  return {.body = EntryOf(id) + (open ? OpenFile() : "")};
}

MemoryFiles::Result MemoryFiles::Rename(uint64_t from, uint64_t to, std::string_view names) {
  const std::string_view old_name = TakeName(names);
  const auto found = At(from).entries.find(old_name);
  if (found == At(from).entries.end()) return {.error = -ENOENT};
  const uint64_t id = found->second;
  At(from).entries.erase(found);
  At(to).entries.insert_or_assign(std::string(TakeName(names)), id);
  return {};
}

MemoryFiles::Result MemoryFiles::Remove(uint64_t parent, std::string_view name) {
  const auto found = At(parent).entries.find(name);
  if (found == At(parent).entries.end()) return {.error = -ENOENT};
  At(parent).entries.erase(found);
  return {};
}

MemoryFiles::Result MemoryFiles::SetAttributes(uint64_t id, std::string_view body) {
  const auto in = Take<fuse_setattr_in>(body);
  if ((in.valid & FATTR_MODE) != 0)
    At(id).mode = (At(id).mode & kTypeBits) | (in.mode & ~kTypeBits);
  if ((in.valid & FATTR_SIZE) != 0) At(id).content.resize(in.size);
  fuse_attr_out out{};
  out.attr = AttributesOf(id);
  return {.body = Bytes(out)};
}

MemoryFiles::Result MemoryFiles::Read(uint64_t id, std::string_view body) const {
  const auto in = Take<fuse_read_in>(body);
  const std::string& content = At(id).content;
  if (in.offset >= content.size()) return {};
  return {.body = content.substr(in.offset, in.size)};
}

// An entry's offset is the number of those before it and of itself.
MemoryFiles::Result MemoryFiles::List(uint64_t id, std::string_view body) const {
  const auto in = Take<fuse_read_in>(body);
  Result result;
  uint64_t at = 0;
  for (const auto& [name, node] : At(id).entries) {
    if (++at <= in.offset) continue;
    fuse_dirent entry{};
    entry.ino = node;
    entry.off = at;
    entry.namelen = static_cast<uint32_t>(name.size());
    entry.type = (At(node).mode & kTypeBits) >> 12;
    std::string bytes(reinterpret_cast<const char*>(&entry), FUSE_NAME_OFFSET);
    bytes += name;
    bytes.resize(FUSE_DIRENT_ALIGN(bytes.size()));
    if (result.body.size() + bytes.size() > in.size) break;
    result.body += bytes;
  }
  return result;
}

MemoryFiles::Result MemoryFiles::Write(uint64_t id, std::string_view body) {
  const auto in = Take<fuse_write_in>(body);
  std::string& content = At(id).content;
  content.resize(std::max<size_t>(content.size(), in.offset + in.size));
  content.replace(in.offset, in.size, body.substr(0, in.size));
  fuse_write_out out{};
  out.size = in.size;
  return {.body = Bytes(out)};
}

std::optional<std::string> MemoryFiles::Content(std::string_view path) const {
  uint64_t id = FUSE_ROOT_ID;
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    const auto found = At(id).entries.find(name);
    if (found == At(id).entries.end()) return std::nullopt;
    id = found->second;
  }
  if (!S_ISREG(At(id).mode)) return std::nullopt;
  return At(id).content;
}

}  // namespace resmgr::test
