// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/http_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/base/percent.h"
#include "pkg/sys/files.h"
#include "pkg/sys/thread.h"
#include "pkg/sys/unique_fd.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kMostClients = 256;
constexpr size_t kLongestHead = size_t{16} << 10;
// Limit of the bytes that wait for all clients together. One answer has some hundred KiB on a large
// node.
constexpr size_t kMostUnsent = size_t{16} << 20;
constexpr milliseconds kReadDeadline{3'000};
constexpr milliseconds kSendDeadline{5'000};
// Time for the client to close its side: closing with unread data could make it lose the answer.
constexpr milliseconds kCloseDeadline{1'000};
constexpr milliseconds kEndDeadline{250};
constexpr milliseconds kAcceptPause{100};  // if no descriptor is left
constexpr int kBacklog = 1024;

std::string_view StatusLine(int code) {
  constexpr std::array<std::pair<int, std::string_view>, 8> kLines = {{
      {200, "200 OK"},
      {308, "308 Permanent Redirect"},
      {400, "400 Bad Request"},
      {403, "403 Forbidden"},
      {404, "404 Not Found"},
      {405, "405 Method Not Allowed"},
      {421, "421 Misdirected Request"},
      {503, "503 Service Unavailable"},
  }};
  const auto found = std::ranges::find(kLines, code, [](const auto& line) { return line.first; });
  return found == kLines.end() ? "500 Internal Server Error" : found->second;
}

std::string TextOf(const HttpAnswer& answer, bool with_body) {
  std::string text =
      fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n",
                  StatusLine(answer.code), answer.type, answer.body.size());
  for (const auto& [name, value] : answer.headers)
    text += fmt::format("{}: {}\r\n", name, value);
  text += "\r\n";
  if (with_body) text += answer.body;
  return text;
}

// `family`: of the addresses that are tried; AF_INET6 without a host takes IPv4 as well.
StatusOr<UniqueFd> ListenOn(int family, const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  const int error =
      ::getaddrinfo(host.empty() ? nullptr : host.c_str(), service.c_str(), &hints, &found);
  if (error != 0) return Unavailable("{}", ::gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, &::freeaddrinfo);
  Status last = Unavailable("it has no address");
  for (const addrinfo* each = all.get(); each != nullptr; each = each->ai_next) {
    UniqueFd fd(::socket(each->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int on = 1;
    const int off = 0;
    const bool both = host.empty() && each->ai_family == AF_INET6;
    if (fd.valid() && ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        (!both || ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0) &&
        ::bind(fd.get(), each->ai_addr, each->ai_addrlen) == 0 &&
        ::listen(fd.get(), kBacklog) == 0) {
      return fd;
    }
    last = ErrnoStatus(errno, "listen");
  }
  return last;
}

StatusOr<UniqueFd> Listen(const std::string& host, int port) {
  if (!host.empty()) return ListenOn(AF_UNSPEC, host, port);
  StatusOr<UniqueFd> both = ListenOn(AF_INET6, host, port);
  return both.ok() ? std::move(both) : ListenOn(AF_INET, host, port);  // the kernel has no IPv6
}

int PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

struct Client {
  enum class Phase { kReading, kWaiting, kSending, kClosing };

  UniqueFd fd;
  Clock::time_point deadline;
  Phase phase = Phase::kReading;
  std::string text{};  // the request, and later the answer
  size_t sent = 0;

  size_t unsent() const { return phase == Phase::kSending ? text.size() - sent : 0; }
};

// Requests of one kind, and the threads that answer them.
struct Queue {
  std::deque<std::pair<uint64_t, HttpRequest>> requests;
  std::condition_variable changed;
};

// Removes and returns the next line, without its end.
std::string_view TakeLine(std::string_view& rest) {
  const size_t end = std::min(rest.find("\r\n"), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 2, rest.size()));
  return line;
}

}  // namespace

struct HttpServer::State {
  explicit State(Options how) : options(std::move(how)) {}

  // The body of each thread that answers.
  void Serve();
  void Answer(Queue& queue);

  // The following functions run on the thread of the connections.
  void Accept();
  void OnReady(uint64_t id);
  bool Read(uint64_t id, Client& client);  // false: close the client
  void Ask(uint64_t id, Client& client, std::string_view head);
  void Begin(Client& client, std::string text);
  bool Send(Client& client);
  void TakeAnswers();
  void MakeRoom();
  void DropLate();
  milliseconds Wait() const;
  void Wake() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake.get(), &one, sizeof(one));
  }

  const Options options;
  UniqueFd listening;
  UniqueFd wake;
  std::vector<std::thread> threads;

  std::mutex mutex;  // guards the following members
  std::condition_variable ended;
  bool over = false;
  size_t running = 0;
  Queue quick;
  Queue slow;
  std::vector<std::pair<uint64_t, std::string>> answers;

  // Used only by the thread of the connections. The oldest client is first.
  std::map<uint64_t, Client> clients;
  uint64_t next_id = 1;
  Clock::time_point accept_from{};
};

void HttpServer::State::Answer(Queue& queue) {
  std::unique_lock lock(mutex);
  while (true) {
    queue.changed.wait(lock, [&] { return over || !queue.requests.empty(); });
    if (over) return;
    const auto [id, request] = std::move(queue.requests.front());
    queue.requests.pop_front();
    lock.unlock();
    std::string text = TextOf(options.answer(request), request.method != "HEAD");
    lock.lock();
    answers.emplace_back(id, std::move(text));
    Wake();
  }
}

void HttpServer::State::Serve() {
  std::vector<pollfd> polled;
  std::vector<uint64_t> ids;
  while (true) {
    {
      const std::lock_guard lock(mutex);
      if (over) break;
    }
    const bool accepts = Clock::now() >= accept_from;
    polled = {{wake.get(), POLLIN, 0}, {accepts ? listening.get() : -1, POLLIN, 0}};
    ids.clear();
    for (const auto& [id, client] : clients) {
      if (client.phase == Client::Phase::kWaiting) continue;
      const bool sends = client.phase == Client::Phase::kSending;
      polled.push_back({client.fd.get(), static_cast<short>(sends ? POLLOUT : POLLIN), 0});
      ids.push_back(id);
    }
    ::poll(polled.data(), polled.size(), static_cast<int>(Wait().count()));
    for (size_t i = 0; i < ids.size(); ++i)
      if (polled[i + 2].revents != 0) OnReady(ids[i]);
    if (polled[0].revents != 0) {
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = ::read(wake.get(), &count, sizeof(count));
    }
    TakeAnswers();
    DropLate();
    if (polled[1].revents != 0) Accept();
  }
  // Clients and socket are closed here, since a slow answer may keep this object for a while.
  clients.clear();
  listening.Reset();
}

milliseconds HttpServer::State::Wait() const {
  constexpr milliseconds kLongest{10'000};
  const auto now = Clock::now();
  auto next = now + kLongest;
  if (accept_from > now) next = std::min(next, accept_from);
  for (const auto& [id, client] : clients)
    if (client.phase != Client::Phase::kWaiting) next = std::min(next, client.deadline);
  return std::max(std::chrono::ceil<milliseconds>(next - now), milliseconds(0));
}

void HttpServer::State::Accept() {
  for (size_t i = 0; i < kMostClients; ++i) {
    auto accepted = AcceptOn(listening.get());
    if (!accepted.ok()) accept_from = Clock::now() + kAcceptPause;
    if (!accepted.ok() || !accepted->has_value()) return;
    MakeRoom();
    const auto added = clients.emplace(
        next_id++, Client{.fd = **std::move(accepted), .deadline = Clock::now() + kReadDeadline});
    // Most clients have sent their request by now, so it can be read at once.
    OnReady(added.first->first);
  }
}

// If there are too many clients, closes one: the oldest that has got its answer, else the oldest
// that sends its request, reads its answer, or waits for it.
void HttpServer::State::MakeRoom() {
  if (clients.size() < kMostClients) return;
  using enum Client::Phase;
  for (const Client::Phase phase : {kClosing, kReading, kSending, kWaiting}) {
    const auto oldest = std::ranges::find_if(
        clients, [phase](const auto& each) { return each.second.phase == phase; });
    if (oldest == clients.end()) continue;
    clients.erase(oldest);
    return;
  }
}

void HttpServer::State::DropLate() {
  const auto now = Clock::now();
  std::erase_if(clients, [now](const auto& each) {
    return each.second.phase != Client::Phase::kWaiting && each.second.deadline <= now;
  });
  size_t unsent = 0;
  for (const auto& [id, client] : clients)
    unsent += client.unsent();
  for (auto each = clients.begin(); unsent > kMostUnsent && each != clients.end();) {
    unsent -= each->second.unsent();
    each = each->second.unsent() > 0 ? clients.erase(each) : std::next(each);
  }
}

void HttpServer::State::OnReady(uint64_t id) {
  const auto at = clients.find(id);
  if (at == clients.end()) return;
  Client& client = at->second;
  const bool stays = client.phase == Client::Phase::kSending ? Send(client) : Read(id, client);
  if (!stays) clients.erase(at);
}

bool HttpServer::State::Read(uint64_t id, Client& client) {
  char buffer[4096];
  const ssize_t got = ::recv(client.fd.get(), buffer, sizeof(buffer), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  if (client.phase == Client::Phase::kClosing) return true;
  client.text.append(buffer, static_cast<size_t>(got));
  const size_t end = client.text.find("\r\n\r\n");
  if (end == std::string::npos && client.text.size() < kLongestHead) return true;
  Ask(id, client, std::string_view(client.text).substr(0, std::min(end, kLongestHead)));
  return client.phase != Client::Phase::kSending || Send(client);
}

void HttpServer::State::Ask(uint64_t id, Client& client, std::string_view head) {
  const bool whole = head.size() < kLongestHead;
  StatusOr<HttpRequest> request =
      whole ? ParseHttpHead(head) : InvalidArgument("it has more than {} bytes", kLongestHead);
  if (!request.ok()) {
    return Begin(client, TextOf({.code = 400, .body = "Bad Request\n"}, true));
  }
  Queue& queue = options.is_slow && options.is_slow(*request) ? slow : quick;
  const std::lock_guard lock(mutex);
  // The queue may also have requests of clients that are closed already.
  if (queue.requests.size() >= kMostClients) {
    return Begin(client, TextOf({.code = 503, .body = "too many requests wait\n"}, true));
  }
  client.phase = Client::Phase::kWaiting;
  client.text.clear();
  queue.requests.emplace_back(id, *std::move(request));
  queue.changed.notify_one();
}

void HttpServer::State::Begin(Client& client, std::string text) {
  client.phase = Client::Phase::kSending;
  client.deadline = Clock::now() + kSendDeadline;
  client.text = std::move(text);
  client.sent = 0;
}

bool HttpServer::State::Send(Client& client) {
  while (client.unsent() > 0) {
    const ssize_t sent =
        ::send(client.fd.get(), client.text.data() + client.sent, client.unsent(), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    client.sent += static_cast<size_t>(sent);
  }
  client.phase = Client::Phase::kClosing;
  client.deadline = Clock::now() + kCloseDeadline;
  std::string().swap(client.text);  // an assignment would keep the memory
  return ::shutdown(client.fd.get(), SHUT_WR) == 0;
}

void HttpServer::State::TakeAnswers() {
  std::vector<std::pair<uint64_t, std::string>> taken;
  {
    const std::lock_guard lock(mutex);
    taken.swap(answers);
  }
  for (auto& [id, text] : taken) {
    const auto at = clients.find(id);
    if (at == clients.end()) continue;
    Begin(at->second, std::move(text));
    if (!Send(at->second)) clients.erase(at);
  }
}

StatusOr<std::unique_ptr<HttpServer>> HttpServer::Create(const std::string& host, int port,
                                                         Options options) {
  const auto state = std::make_shared<State>(std::move(options));
  RESMGR_ASSIGN_OR_RETURN(state->listening, Listen(host, port));
  state->wake = UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!state->wake.valid()) return ErrnoStatus(errno, "eventfd");
  std::unique_ptr<HttpServer> server(new HttpServer(state, PortOf(state->listening.get())));
  const auto start = [&state](std::function<void(State&)> body) {
    state->threads.push_back(StartThread("metrics", [state, body = std::move(body)] {
      body(*state);
      const std::lock_guard lock(state->mutex);
      --state->running;
      state->ended.notify_all();
    }));
    const std::lock_guard lock(state->mutex);
    ++state->running;
  };
  try {
    start([](State& each) { each.Serve(); });
    for (size_t i = 0; i < state->options.quick_threads; ++i)
      start([](State& each) { each.Answer(each.quick); });
    for (size_t i = 0; i < state->options.slow_threads; ++i)
      start([](State& each) { each.Answer(each.slow); });
  } catch (const std::system_error& error) {
    return Unavailable("no thread can be made: {}", error.code().message());
  }
  return server;
}

HttpServer::HttpServer(std::shared_ptr<State> state, int port)
    : state_(std::move(state)), port_(port) {}

HttpServer::~HttpServer() {
  std::unique_lock lock(state_->mutex);
  state_->over = true;
  state_->quick.changed.notify_all();
  state_->slow.changed.notify_all();
  state_->Wake();
  const bool all =
      state_->ended.wait_for(lock, kEndDeadline, [this] { return state_->running == 0; });
  lock.unlock();
  for (std::thread& thread : state_->threads)
    all ? thread.join() : thread.detach();
  state_->threads.clear();
}

StatusOr<HttpRequest> ParseHttpHead(std::string_view head) {
  HttpRequest request;
  const std::string_view line = TakeLine(head);
  const size_t method = line.find(' ');
  const size_t target = line.rfind(' ');
  if (method == std::string_view::npos || method == 0 || target <= method + 1 ||
      !line.substr(target + 1).starts_with("HTTP/1.") || line[method + 1] != '/') {
    return InvalidArgument("it is not an HTTP/1 request");
  }
  request.method = line.substr(0, method);
  const std::string_view whole = line.substr(method + 1, target - method - 1);
  const size_t question = std::min(whole.find('?'), whole.size());
  request.path = PercentDecodedLeniently(whole.substr(0, question));
  request.query = whole.substr(std::min(question + 1, whole.size()));
  while (!head.empty()) {
    const std::string_view header = TakeLine(head);
    const size_t colon = header.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view name = header.substr(0, colon);
    const std::string_view value = Trim(header.substr(colon + 1));
    if (EqualsIgnoreCase(name, "Host")) request.host = value;
    if (EqualsIgnoreCase(name, "Origin")) request.origin = value;
    if (EqualsIgnoreCase(name, "Sec-Fetch-Site")) request.fetch_site = value;
  }
  return request;
}

}  // namespace resmgr
