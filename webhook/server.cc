// SPDX-License-Identifier: Apache-2.0
#include "webhook/server.h"

#include <csignal>
#include <exception>
#include <set>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "pkg/base/parse.h"
#include "pkg/log/log.h"
#include "pkg/log/not_logged.h"
#include "pkg/log/rate_limit.h"
#include "webhook/certificate.h"
#include "webhook/https_session.h"

namespace resmgr::webhook {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Error = boost::system::error_code;

// Pause after a failed accept, mostly for want of file descriptors.
constexpr std::chrono::milliseconds kAcceptPause{100};
// One of the log lines about clients that refuse the certificate.
constexpr std::chrono::minutes kRefusedPeriod{1};
// Log lines at once about connections that were closed to make room for others.
constexpr uint32_t kClosedBurst = 3;
constexpr std::chrono::minutes kClosedPeriod{1};

Logger& Log() {
  static Logger& logger = GetLogger("webhook");
  return logger;
}

StatusOr<tcp::endpoint> EndpointOf(const ServerOptions& options) {
  if (options.address.empty()) return tcp::endpoint(tcp::v6(), options.port);
  Error error;
  const asio::ip::address address = asio::ip::make_address(options.address, error);
  if (error) return InvalidArgument("\"{}\" is not an IP address", Printable(options.address, 64));
  return tcp::endpoint(address, options.port);
}

// An IPv6 socket for all addresses takes IPv4 as well.
Error Listen(tcp::acceptor& acceptor, const tcp::endpoint& endpoint) {
  Error error;
  acceptor.open(endpoint.protocol(), error);
  if (error) return error;
  acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (endpoint.protocol() == tcp::v6() && endpoint.address().is_unspecified()) {
    acceptor.set_option(asio::ip::v6_only(false), error);
  }
  acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    Error ignored;
    acceptor.close(ignored);
  }
  return error;
}

}  // namespace

class Server::Impl : private Session::Owner {
 public:
  explicit Impl(ServerOptions options)
      : options_(std::move(options)), files_(options_.certificate_file, options_.key_file) {}

  ~Impl() override { destroyed_ = true; }

  Status Open() {
    RESMGR_ASSIGN_OR_RETURN(tls_, files_.Load());
    RESMGR_ASSIGN_OR_RETURN(const tcp::endpoint endpoint, EndpointOf(options_));
    Error error = Listen(acceptor_, endpoint);
    if (error && options_.address.empty()) {
      error = Listen(acceptor_, tcp::endpoint(tcp::v4(), options_.port));
    }
    if (error) {
      return Unavailable("cannot listen on {}{}port {}: {}", options_.address,
                         options_.address.empty() ? "" : " ", options_.port, error.message());
    }
    port_ = acceptor_.local_endpoint(error).port();
    return OkStatus();
  }

  void HandleSignals() {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
      Error ignored;
      signals_.add(signal, ignored);
    }
    AwaitSignal();
  }

  Status Run() {
    Log().Info("serving on port {}", port_);
    Accept();
    CheckDates();
    LookAtCertificate();
    try {
      io_.run();
    } catch (const std::exception& exception) {
      return Internal("the server ended: {}", exception.what());
    }
    return OkStatus();
  }

  void Stop() {
    asio::post(io_, [this] { Drain(); });
  }

  uint16_t port() const { return port_; }

 private:
  void AwaitSignal() {
    signals_.async_wait([this](const Error& error, int signal) {
      // Cancelling does not reach a handler that is queued already.
      if (error || stopping_) return;
      if (signal == SIGINT || (signal == SIGTERM && leaving_)) return Drain();
      signal == SIGTERM ? Leave() : Reload();
      AwaitSignal();
    });
  }

  void Leave() {
    leaving_ = true;
    Log().Info("SIGTERM: not ready any more, ends in {} ms", options_.shutdown_delay.count());
    delay_timer_.expires_after(options_.shutdown_delay);
    delay_timer_.async_wait([this](const Error& error) {
      if (!error) Drain();
    });
  }

  void LookAtCertificate() {
    reload_timer_.expires_after(options_.limits.reload);
    reload_timer_.async_wait([this](const Error& error) {
      if (error || stopping_) return;
      if (files_.Changed()) Reload();
      CheckDates();
      LookAtCertificate();
    });
  }

  void CheckDates() {
    if (out_of_date_told_ || !IsOutOfDate(tls_)) return;
    out_of_date_told_ = true;
    Log().Warn(
        "{}: the certificate has expired or is not valid yet: API servers refuse it, and pods get "
        "no annotation",
        options_.certificate_file);
  }

  void Reload() {
    auto tls = files_.Load();
    if (tls.ok()) {
      tls_ = *std::move(tls);
      out_of_date_told_ = false;
      Log().Info("the certificate was loaded again");
    } else {
      Log().Warn("the previous certificate stays in use: {}", Message(tls.status()));
    }
  }

  void Accept() {
    acceptor_.async_accept([this](const Error& error, tcp::socket socket) {
      if (stopping_) return;
      if (error) return AcceptLater();
      Serve(std::move(socket));
      Accept();
    });
  }

  void AcceptLater() {
    accept_timer_.expires_after(kAcceptPause);
    accept_timer_.async_wait([this](const Error& error) {
      if (!error) Accept();
    });
  }

  void Serve(tcp::socket socket) {
    Error ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    if (open_ >= options_.limits.connections) {
      CloseOne(LessUseful, [](const Standing&) { return true; });
    }
    Session::Owner& owner = *this;
    const auto session = std::make_shared<Session>(std::move(socket), tls_, options_.limits, owner);
    sessions_.insert(session.get());
    ++open_;
    session->Start();
  }

  // Closes the first session in the order of `before` among those that `eligible` admits; false if
  // there is none.
  template <typename Before, typename Eligible>
  bool CloseOne(Before before, Eligible eligible) {
    Session* chosen = nullptr;
    for (Session* const session : sessions_) {
      const Standing& standing = session->standing();
      if (standing.closed || !eligible(standing)) continue;
      if (chosen == nullptr || before(standing, chosen->standing())) chosen = session;
    }
    if (chosen == nullptr) return false;
    if (const auto suppressed = closed_limit_.Pass(std::chrono::steady_clock::now())) {
      Log().Warn("closing a connection to make room for another one{}", NotLogged(*suppressed));
    }
    --open_;
    chosen->Abort();
    return true;
  }

  void MakeRoomForBody(size_t bytes) override {
    const auto longest = [](const Standing& a, const Standing& b) {
      return a.body_since < b.body_since;
    };
    const auto reads = [](const Standing& standing) { return standing.body_room > 0; };
    while (BodyRoom() + bytes > options_.limits.bodies) {
      if (!CloseOne(longest, reads)) return;
    }
  }

  // The bytes that are set aside for the bodies of all sessions.
  size_t BodyRoom() const {
    size_t sum = 0;
    for (const Session* const session : sessions_)
      sum += session->standing().body_room;
    return sum;
  }

  void CertificateRefused(const Error& alert) override {
    if (const auto suppressed = refused_limit_.Pass(std::chrono::steady_clock::now())) {
      Log().Warn(
          "a client refuses the certificate in {}: {}; the caBundle of the webhook's configuration "
          "must have the authority that signed it ({} more were not logged)",
          options_.certificate_file, alert.message(), *suppressed);
    }
  }

  bool leaving() const override { return leaving_; }

  void Ended(Session& session) override {
    sessions_.erase(&session);
    if (!session.standing().closed) --open_;
    if (stopping_ && !destroyed_ && sessions_.empty()) grace_timer_.cancel();
  }

  void Drain() {
    if (stopping_) return;
    stopping_ = true;
    Error ignored;
    acceptor_.close(ignored);
    signals_.cancel(ignored);
    reload_timer_.cancel();
    accept_timer_.cancel();
    delay_timer_.cancel();
    if (sessions_.empty()) return;
    grace_timer_.expires_after(options_.limits.grace);
    grace_timer_.async_wait([this](const Error& error) {
      if (!error) io_.stop();
    });
    // A copy, since sessions that end are removed from the list.
    const auto sessions = sessions_;
    for (Session* const session : sessions)
      session->Drain();
  }

  // Declared before io_, whose destructor ends the sessions.
  const ServerOptions options_;
  std::set<Session*> sessions_;
  size_t open_ = 0;       // sessions_ without those whose end is under way
  bool leaving_ = false;  // SIGTERM came; the server still serves
  bool stopping_ = false;
  bool destroyed_ = false;
  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_};
  asio::signal_set signals_{io_};
  asio::steady_timer reload_timer_{io_};
  asio::steady_timer accept_timer_{io_};
  asio::steady_timer delay_timer_{io_};
  asio::steady_timer grace_timer_{io_};
  CertificateFiles files_;
  TlsContext tls_;
  bool out_of_date_told_ = false;
  RateLimit closed_limit_{kClosedBurst, kClosedPeriod};
  RateLimit refused_limit_{1, kRefusedPeriod};
  uint16_t port_ = 0;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

StatusOr<std::unique_ptr<Server>> Server::Create(ServerOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  RESMGR_RETURN_IF_ERROR(impl->Open());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

void Server::HandleSignals() {
  impl_->HandleSignals();
}

Status Server::Run() {
  return impl_->Run();
}

void Server::Stop() {
  impl_->Stop();
}

uint16_t Server::port() const {
  return impl_->port();
}

}  // namespace resmgr::webhook
