// SPDX-License-Identifier: Apache-2.0
// webhook-bench: admission reviews over TLS to the webhook's server, which has one core to itself.
// First at a fixed rate, as an API server under load would send them, with latencies counted from
// the time at which each was due; then as many as it can take.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>

#include "pkg/cmdline/command_line.h"
#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "webhook/server.h"
#include "webhook/testing/https_client.h"
#include "webhook/testing/reviews.h"
#include "webhook/testing/test_certificate.h"

namespace resmgr::webhook {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kP99LimitMilliseconds = 5;

struct Flags {
  int64_t rate = 1000;       // reviews per second
  int64_t seconds = 10;      // of each part
  int64_t connections = 16;  // an API server keeps a few
};

struct Result {
  std::vector<double> latencies;  // milliseconds, sorted
  double seconds = 0;
  double server_cpu = 0;  // seconds
  int64_t failures = 0;

  double Percentile(double percent) const {
    if (latencies.empty()) return 0;
    const auto last = static_cast<double>(latencies.size() - 1);
    return latencies[static_cast<size_t>(last * percent / 100)];
  }
};

void PinToCore(size_t core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  // Without the right to pin, the process runs on any CPU; the report has its CPU time.
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

// The server on a thread of its own, on core 0.
class Bed {
 public:
  Status Start() {
    const TestCertificate pair = MakeTestCertificate("localhost");
    ServerOptions options;
    options.address = "127.0.0.1";
    options.port = 0;
    options.certificate_file = directory_.File("tls.crt");
    options.key_file = directory_.File("tls.key");
    RESMGR_RETURN_IF_ERROR(AtomicWriteFile(options.certificate_file, pair.certificate, 0644));
    RESMGR_RETURN_IF_ERROR(AtomicWriteFile(options.key_file, pair.key, 0600));
    RESMGR_ASSIGN_OR_RETURN(server_, Server::Create(std::move(options)));
    thread_ = std::thread([this] {
      PinToCore(0);
      end_ = server_->Run();
    });
    return OkStatus();
  }

  ~Bed() {
    if (!thread_.joinable()) return;
    server_->Stop();
    thread_.join();
  }

  uint16_t port() const { return server_->port(); }

  double CpuSeconds() {
    clockid_t clock{};
    timespec time{};
    pthread_getcpuclockid(thread_.native_handle(), &clock);
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }

 private:
  TempDir directory_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
  Status end_;
};

// One connection that sends its share; each review is due `pause` after the one before, or at once
// for a pause of 0.
void Send(HttpsClient& client, const std::string& review, Clock::time_point begin,
          Clock::time_point end, Clock::duration pause, Result& result) {
  Clock::time_point due = begin;
  while (due < end) {
    std::this_thread::sleep_until(due);
    const auto response = client.PostReview(review);
    const Clock::time_point now = Clock::now();
    if (!response.ok() || response->status != 200) {
      ++result.failures;
      if (!response.ok()) return;
    }
    result.latencies.push_back(std::chrono::duration<double, std::milli>(now - due).count());
    due = pause.count() > 0 ? due + pause : now;
  }
}

StatusOr<Result> Measure(Bed& bed, const Flags& flags, int64_t rate) {
  std::vector<HttpsClient> clients;
  for (int64_t i = 0; i < flags.connections; ++i) {
    RESMGR_ASSIGN_OR_RETURN(HttpsClient client, HttpsClient::Connect(bed.port()));
    clients.push_back(std::move(client));
  }
  const std::string review = ReviewOf(EverydayPod()).dump();
  std::vector<Result> parts(clients.size());
  const double cpu = bed.CpuSeconds();
  const Clock::time_point begin = Clock::now();
  const Clock::time_point end = begin + std::chrono::seconds(flags.seconds);
  Clock::duration pause{};
  if (rate > 0) pause = std::chrono::nanoseconds(1'000'000'000 * flags.connections / rate);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < clients.size(); ++i) {
    // Their turns are spread over the pause.
    const auto first = begin + pause * static_cast<int64_t>(i) / flags.connections;
    threads.emplace_back([&, i, first] { Send(clients[i], review, first, end, pause, parts[i]); });
  }
  for (std::thread& thread : threads)
    thread.join();

  Result all;
  all.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  all.server_cpu = bed.CpuSeconds() - cpu;
  for (const Result& part : parts) {
    all.latencies.insert(all.latencies.end(), part.latencies.begin(), part.latencies.end());
    all.failures += part.failures;
  }
  std::sort(all.latencies.begin(), all.latencies.end());
  return all;
}

void Print(std::string_view what, const Result& result) {
  const auto count = static_cast<double>(result.latencies.size());
  fmt::print(
      "{:<11} {:>7.0f}/s  p50 {:>6.3f} ms  p99 {:>6.3f} ms  p99.9 {:>6.3f} ms  CPU {:>5.1f} us per "
      "review, {:>4.1f} % of a core  failures {}\n",
      what, count / result.seconds, result.Percentile(50), result.Percentile(99),
      result.Percentile(99.9), result.server_cpu * 1e6 / std::max(count, 1.0),
      result.server_cpu / result.seconds * 100, result.failures);
}

Status Run(const Flags& flags) {
  Bed bed;
  RESMGR_RETURN_IF_ERROR(bed.Start());
  fmt::print("{} connections, reviews of {} bytes\n", flags.connections,
             ReviewOf(EverydayPod()).dump().size());
  RESMGR_ASSIGN_OR_RETURN(const Result steady, Measure(bed, flags, flags.rate));
  Print("fixed rate", steady);
  RESMGR_ASSIGN_OR_RETURN(const Result full, Measure(bed, flags, 0));
  Print("full speed", full);
  const auto reached = static_cast<double>(steady.latencies.size()) / steady.seconds;
  if (steady.failures + full.failures > 0 || reached < 0.99 * static_cast<double>(flags.rate) ||
      steady.Percentile(99) > kP99LimitMilliseconds) {
    return DeadlineExceeded("the fixed rate was not served with a p99 below {} ms",
                            kP99LimitMilliseconds);
  }
  return OkStatus();
}

int Main(int argc, const char* const* argv) {
  Flags flags;
  CommandLine line("webhook-bench", "Measures the webhook's server over TLS on 127.0.0.1.");
  line.Flag("rate", "N", "Reviews per second of the first part.", &flags.rate);
  line.Flag("seconds", "N", "How long each part takes.", &flags.seconds);
  line.Flag("connections", "N", "How many clients there are.", &flags.connections);
  Status status = line.Parse(argc, argv);
  if (status.ok() && line.help_requested()) {
    fmt::print("{}", line.Help());
    return 0;
  }
  if (status.ok() && (flags.rate < 1 || flags.seconds < 1 || flags.connections < 1)) {
    status = InvalidArgument("all values must be above 0");
  }
  if (status.ok()) status = Run(flags);
  if (status.ok()) return 0;
  fmt::print(stderr, "webhook-bench: {}\n", Message(status));
  return 1;
}

}  // namespace
}  // namespace resmgr::webhook

int main(int argc, char** argv) {
  return resmgr::webhook::Main(argc, argv);
}
