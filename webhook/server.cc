// SPDX-License-Identifier: Apache-2.0
#include "webhook/server.h"

#include <csignal>
#include <exception>
#include <map>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "pkg/base/parse.h"
#include "pkg/log/log.h"
#include "webhook/certificate.h"
#include "webhook/session.h"

namespace resmgr::webhook {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Error = boost::system::error_code;

// After a failed accept (no file descriptors, mostly).
constexpr std::chrono::milliseconds kAcceptPause{100};

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

class Server::Impl {
 public:
  explicit Impl(ServerOptions options)
      : options_(std::move(options)), files_(options_.certificate_file, options_.key_file) {}

  ~Impl() { destroyed_ = true; }

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
      // Cancelling does not reach what has happened already.
      if (error || stopping_) return;
      if (signal != SIGHUP) return Drain();
      Reload();
      AwaitSignal();
    });
  }

  void LookAtCertificate() {
    reload_timer_.expires_after(options_.limits.reload);
    reload_timer_.async_wait([this](const Error& error) {
      if (error || stopping_) return;
      if (files_.Changed()) Reload();
      LookAtCertificate();
    });
  }

  void Reload() {
    auto tls = files_.Load();
    if (tls.ok()) {
      tls_ = *std::move(tls);
      Log().Info("the certificate was loaded again");
    } else {
      Log().Warn("the certificate stays the one before: {}", Message(tls.status()));
    }
  }

  void Accept() {
    if (stopping_ || accepting_ || sessions_.size() >= options_.limits.connections) return;
    accepting_ = true;
    acceptor_.async_accept([this](const Error& error, tcp::socket socket) {
      accepting_ = false;
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
    const uint64_t id = next_session_++;
    const auto session = std::make_shared<Session>(std::move(socket), tls_, options_.limits,
                                                   [this, id] { SessionEnded(id); });
    sessions_.emplace(id, session);
    session->Start();
  }

  void SessionEnded(uint64_t id) {
    sessions_.erase(id);
    if (destroyed_) return;
    if (!stopping_) return Accept();
    if (sessions_.empty()) grace_timer_.cancel();
  }

  void Drain() {
    if (stopping_) return;
    stopping_ = true;
    Error ignored;
    acceptor_.close(ignored);
    signals_.cancel(ignored);
    reload_timer_.cancel();
    accept_timer_.cancel();
    if (sessions_.empty()) return;
    grace_timer_.expires_after(options_.limits.grace);
    grace_timer_.async_wait([this](const Error& error) {
      if (!error) io_.stop();
    });
    // Ending sessions leave the list.
    const auto sessions = sessions_;
    for (const auto& [id, weak] : sessions) {
      if (const auto session = weak.lock()) session->Drain();
    }
  }

  // Before io_, whose end ends the sessions.
  const ServerOptions options_;
  std::map<uint64_t, std::weak_ptr<Session>> sessions_;
  bool stopping_ = false;
  bool destroyed_ = false;
  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_};
  asio::signal_set signals_{io_};
  asio::steady_timer reload_timer_{io_};
  asio::steady_timer accept_timer_{io_};
  asio::steady_timer grace_timer_{io_};
  CertificateFiles files_;
  TlsContext tls_;
  uint64_t next_session_ = 0;
  uint16_t port_ = 0;
  bool accepting_ = false;
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
