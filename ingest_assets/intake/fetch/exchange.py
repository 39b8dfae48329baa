"""The requests of one fetch. Follows redirects itself, so that every hop passes the same checks."""

import contextlib
import functools
import ssl
from collections.abc import Iterator, Mapping

import httpcore
import httpx

from ingest_assets.core.endpoints import retry_after_s
from ingest_assets.core.identity import installed_versions
from ingest_assets.intake.fetch import errors
from ingest_assets.intake.fetch.addresses import checked_url, host_of, require_allowed_literal, shown
from ingest_assets.intake.fetch.hosts import Hosts
from ingest_assets.intake.fetch.network import (
    CheckedDialler,
    Clock,
    Deadline,
    DirectTransport,
    Network,
    environment_proxy,
)
from ingest_assets.settings.intake import FetchOptions

PRODUCT = "ingest-assets"
# Statuses whose Retry-After applies to the whole host, not only to one document.
_PAUSE_STATUSES = (429, 503)


def user_agent(options: FetchOptions) -> str:
    """Return the User-Agent: product, version and the operator's contact."""
    version = installed_versions(PRODUCT)[PRODUCT]
    contact = f"+{options.contact}" if options.contact else "automated; its operator left no contact"
    return options.user_agent or f"{PRODUCT}/{version} ({contact})"


@functools.lru_cache(maxsize=1)
def trusted_certificates() -> ssl.SSLContext:
    """Load certifi's authorities, or those of SSL_CERT_FILE and SSL_CERT_DIR; cached because it is slow."""
    return httpx.create_ssl_context(trust_env=True)


class Exchange:
    """The requests of one fetch, with one deadline. `host` is the last one requested."""

    def __init__(
        self, options: FetchOptions, hosts: Hosts, network: Network, clock: Clock, deadline: Deadline
    ) -> None:
        self.host = ""
        self.has_answer = False
        self._options = options
        self._hosts = hosts
        self._clock = clock
        self._visited: set[str] = set()
        self._dialler = CheckedDialler(deadline, network, allow_private=options.allow_private)

    @contextlib.contextmanager
    def answer(self, url: httpx.URL, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        """Follow redirects and yield the final response, whose body is not read yet."""
        proxy = environment_proxy(url) if self._options.use_environment_proxies else None
        with contextlib.closing(self._client(proxy)) as client:
            for _ in range(self._options.max_redirects + 1):
                if proxy is not None:
                    require_allowed_literal(url, allow_private=self._options.allow_private)
                with self.explained(url):
                    self._wait_for(url)
                with contextlib.closing(self._send(client, url, headers)) as response:
                    if not 300 <= response.status_code < 400 or response.status_code == 304:
                        yield response
                        return
                    location = response.headers.get("location", "")
                    if not location:
                        raise errors.RedirectRefused(
                            f"{shown(url)} redirects ({response.status_code}) without a location; "
                            "tell the site's owner.",
                            detail={"url": shown(url), "status": response.status_code},
                        )
                    url = checked_url(location, base=url)
        raise errors.RedirectRefused(
            f"{shown(url)}: too many redirects (limit {self._options.max_redirects}); "
            "use the final URL, or raise fetch.max_redirects.",
            detail={"url": shown(url)},
        )

    def refusal(self, response: httpx.Response) -> errors.FetchError:
        """Return the error for a response without a document; pause the host if it sent Retry-After."""
        wait_s = retry_after_s(response.headers.get("retry-after", ""), self._clock.epoch_s())
        if wait_s is not None and response.status_code in _PAUSE_STATUSES:
            self._hosts.pause(self.host, wait_s)
        reason = httpx.codes.get_reason_phrase(response.status_code)
        return errors.status_error(response.status_code, reason, shown(response.url), wait_s)

    @contextlib.contextmanager
    def explained(self, url: httpx.URL, *, is_body: bool = False) -> Iterator[None]:
        """Convert network errors to `FetchError`."""
        where = {"url": shown(url)}
        try:
            yield
        except errors.FetchError as error:
            error.detail.setdefault("url", where["url"])
            raise
        except httpcore.TimeoutException as error:
            text = f"{shown(url)} sent nothing for {self._options.idle_timeout_s:g} s (fetch.idle_timeout_s)."
            if isinstance(error, httpcore.ConnectTimeout):
                limit_s = self._options.connect_timeout_s
                text = f"{shown(url)} accepted no connection within {limit_s:g} s (fetch.connect_timeout_s)."
            raise errors.FetchTimeout(text, detail=where) from error
        except (httpcore.NetworkError, httpcore.ProxyError) as error:
            raise _network_error(error, url, is_body=is_body) from error
        except httpcore.ProtocolError as error:
            if not self._dialler.peer_closed:
                text = f"{shown(url)} sent an invalid HTTP response; tell the site's owner."
                raise errors.ProtocolBroken(text, detail=where) from error
            raise _network_error(error, url, is_body=is_body) from error

    def _client(self, proxy: httpx.Proxy | None) -> httpx.Client:
        """Return a client for one chain of redirects, so that cookies set on the way are sent."""
        self._dialler.proxy_host = proxy.url.host if proxy else None
        options = self._options
        return httpx.Client(
            transport=DirectTransport(self._dialler, trusted_certificates(), proxy),
            trust_env=False,
            headers={"User-Agent": user_agent(options), "Accept": "*/*"},
            timeout=httpx.Timeout(options.idle_timeout_s, connect=options.connect_timeout_s),
        )

    def _wait_for(self, url: httpx.URL) -> None:
        """Wait for the host's turn, once per fetch: the pause is between documents, not between redirects."""
        self.host, self.has_answer = host_of(url), False
        if self.host in self._visited:
            return
        self._visited.add(self.host)
        wait_s = self._hosts.take_turn(self.host, self._dialler.deadline.left_s())
        if wait_s > 0:
            self._clock.sleep(wait_s)

    def _send(self, client: httpx.Client, url: httpx.URL, headers: Mapping[str, str]) -> httpx.Response:
        request = client.build_request("GET", url, headers=dict(headers))
        with self.explained(url):
            try:
                response = client.send(request, stream=True)
            except (httpx.RemoteProtocolError, httpx.InvalidURL):  # httpx parses redirect targets first
                raise errors.RedirectRefused(
                    f"{shown(url)} redirects to an invalid URL; tell the site's owner.",
                    detail={"url": shown(url)},
                ) from None
        self.has_answer = True
        return response


def _network_error(error: Exception, url: httpx.URL, *, is_body: bool) -> errors.FetchError:
    detail = {"url": shown(url)}
    causes: list[BaseException] = [error]
    while (deeper := causes[-1].__cause__ or causes[-1].__context__) is not None:
        causes.append(deeper)
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            reason = cause.verify_message.rstrip(".")
            text = f"{shown(url)} has an invalid TLS certificate ({reason}); tell the site's owner."
            return errors.CertificateRefused(text, detail=detail)
    if is_body:
        return errors.BodyCutOff(
            f"{shown(url)}: the connection closed before the download was complete.", detail=detail
        )
    numbered = (cause.strerror for cause in causes if isinstance(cause, OSError) and cause.strerror)
    reason = next(numbered, "the connection was closed").lower()
    text = f"{shown(url)} did not respond ({reason})."
    return errors.ConnectionFailed(text, detail=detail)
