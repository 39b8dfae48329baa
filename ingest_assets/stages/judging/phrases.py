"""How error, login and cookie pages speak: phrases that occur in a sentence, in lower case.

Each table maps a signal to its phrases in many languages. One signal is a word, two are evidence.
"""

from collections.abc import Mapping
from functools import cached_property

Heard = Mapping[str, tuple[str, ...]]


class Signals:
    """Phrases by signal."""

    def __init__(self, phrases: Heard) -> None:
        self._phrases = phrases

    def heard(self, text: str) -> Heard:
        """The phrases that occur in a text, by signal."""
        known = self._in_ascii if text.isascii() else self._phrases
        heard = {signal: tuple(p for p in phrases if p in text) for signal, phrases in known.items()}
        return {signal: phrases for signal, phrases in heard.items() if phrases}

    @cached_property
    def _in_ascii(self) -> Heard:
        """Most texts need not be searched for Chinese."""
        return {signal: tuple(filter(str.isascii, phrases)) for signal, phrases in self._phrases.items()}


def phrases(text: str) -> tuple[str, ...]:
    """Phrases with semicolons between them."""
    return tuple(" ".join(phrase.split()) for phrase in text.split(";"))


ERROR_SIGNALS = Signals(
    {
        "missing": phrases(
            """
            page not found; file not found; 404 not found; error 404; 404 error; http error;
            page doesn't exist; page does not exist; page no longer exists; page isn't available;
            page is not available; site under maintenance; site is under maintenance;
            site is down for maintenance; down for maintenance; under construction; coming soon;
            seite ist im aufbau; wegen wartungsarbeiten; site en maintenance; sitio en mantenimiento;
            sito in manutenzione; site em manutenção; ведутся технические работы; 网站维护中;
            メンテナンス中; page cannot be displayed; page can't be displayed; page unavailable;
            site can't be reached; content not available; access denied; access is denied; 403 forbidden;
            internal server error; bad gateway; service unavailable; gateway timeout;
            service temporarily unavailable; gateway time-out; too many requests; something went wrong;
            seite nicht gefunden; seite wurde nicht gefunden; zugriff verweigert; interner serverfehler;
            page introuvable; page non trouvée; accès refusé; erreur interne du serveur;
            página no encontrada; acceso denegado; error interno del servidor; página não encontrada;
            acesso negado; pagina non trovata; accesso negato; pagina niet gevonden; toegang geweigerd;
            strona nie została znaleziona; nie znaleziono strony; odmowa dostępu; sidan hittades inte;
            страница не найдена; доступ запрещен; доступ запрещён; внутренняя ошибка сервера;
            sayfa bulunamadı; erişim engellendi; stránka nenalezena; η σελίδα δεν βρέθηκε; 页面不存在;
            找不到页面; 页面未找到; 无法访问此页面; 访问被拒绝; 找不到網頁; 頁面不存在; 服务器内部错误;
            ページが見つかりません; ページは存在しません; アクセスが拒否されました; サーバーエラー;
            페이지를 찾을 수 없습니다; 접근이 거부되었습니다; الصفحة غير موجودة; لم يتم العثور على الصفحة;
            không tìm thấy trang; trang không tồn tại; halaman tidak ditemukan; ไม่พบหน้า; पृष्ठ नहीं मिला
            """
        ),
        "visitor": phrases(
            """
            you are looking for; you're looking for; you were looking for; you requested;
            you have requested; the requested url; the requested page; the requested resource;
            was not found on this server; you tried to; you are trying to; you don't have permission;
            you do not have permission; you don't have authorization; your request could not;
            your request was blocked; have been blocked; the server encountered;
            the server is temporarily; unable to complete your request; couldn't find that page;
            couldn't find the page; can't find the page; cannot find the page; can't seem to find;
            may have been moved; might have been removed; has been removed or; the link you followed;
            which you have reached; will be back shortly; will be back soon; be right back;
            performing scheduled maintenance; performing maintenance; sind bald wieder; de retour bientôt;
            volveremos pronto; torneremo presto; refused to connect; took too long to respond;
            die angeforderte seite; die gewünschte seite; die von ihnen gesuchte; sie suchen;
            wurde verschoben; la page que vous; la page demandée; vous recherchez;
            vous n'avez pas l'autorisation; la página que buscas; la página que está buscando;
            la página solicitada; a página que você; la pagina richiesta; la pagina che stai cercando;
            de opgevraagde pagina; de pagina die u; strona, której szukasz; запрашиваемая страница;
            запрошенная страница; aradığınız sayfa; 您访问的页面; 您请求的页面; 您要查找的页面; 您所访问;
            您訪問的頁面; お探しのページ; ご指定のページ; 요청하신 페이지; 찾으시는 페이지;
            الصفحة التي تبحث عنها; الصفحة المطلوبة; trang bạn; halaman yang anda
            """
        ),
        "advice": phrases(
            """
            check the url; check the address; check the spelling; check the web address;
            return to the home; return to home; go to the home; go to home; back to home;
            back to the home; go back to; try again in a; please try again; contact support;
            if the problem persists; if this problem persists; if the issue persists;
            thank you for your patience; sorry for the inconvenience; apologize for the inconvenience;
            apologise for the inconvenience; bitte versuchen sie es; vielen dank für ihr verständnis;
            merci de votre patience; veuillez réessayer; gracias por su paciencia; приносим извинения;
            take me home; to our homepage; visit our homepage; try again later; try reloading;
            try refreshing; reload this page; refresh the page; contact the site owner;
            contact the website owner; contact the administrator; contact your administrator;
            contact the webmaster; server administrator; use the search; zur startseite;
            überprüfen sie die adresse; versuchen sie es später; zurück zur; retour à l'accueil;
            page d'accueil; réessayez plus tard; vérifiez l'adresse; volver al inicio; página de inicio;
            inténtelo de nuevo; inténtalo de nuevo; voltar para a página; página inicial; torna alla home;
            riprova più tardi; naar de homepage; probeer het later; wróć do strony; вернуться на главную;
            на главную страницу; попробуйте позже; ana sayfaya; 返回首页; 返回主页; 返回首頁; 请稍后再试;
            トップページへ; トップページに戻る; 홈으로; العودة إلى; về trang chủ
            """
        ),
        "machine": phrases(
            """
            ray id; reference #; reference id:; request id:; request id #; incident id; correlation id;
            error code:; error code 1; apache/2; nginx/1; guru meditation; varnish cache; your ip:;
            your ip address:; performance & security by cloudflare; err_; x-request-id
            """
        ),
        "script": phrases(
            """
            enable javascript; javascript is disabled; javascript is required; javascript is not enabled;
            javascript has been disabled; requires javascript; without javascript; turn on javascript;
            supports javascript; javascript to run this app; javascript to view; javascript and cookies;
            checking your browser; checking if the site connection; verify you are human;
            verifying you are human; verify that you are not a robot; you are not a robot; i'm not a robot;
            complete the captcha; complete the security check; unusual traffic; ddos protection;
            your browser is not supported; your browser is out of date; your browser does not support;
            please upgrade your browser; javascript aktivieren; aktivieren sie javascript;
            activer javascript; activez javascript; active javascript; habilite javascript;
            habilitar javascript; ative o javascript; abilita javascript; javascript in te schakelen;
            włącz javascript; включите javascript; javascript'i etkinleştir; 启用javascript;
            启用 javascript; 開啟javascript; javascriptを有効; javascript를 활성화; تفعيل جافا سكريبت
            """
        ),
    }
)

GATE_SIGNALS = Signals(
    {
        "gate": phrases(
            """
            please log in; please login; please sign in; you must be logged in; you must log in;
            you must sign in; you need to log in; you need to sign in; you need to be logged in;
            log in to continue; sign in to continue; sign in to view; log in to view; session has expired;
            session expired; sign in to your account; log in to your account; login to your account;
            please enter your; enter your credentials; enter your username and; enter your user name and;
            enter your email and password; enter your email address and password; login required;
            log in required; sign-in required; authorized users only; authorised users only; members only;
            bitte geben sie ihr; geben sie ihre zugangsdaten; saisissez votre mot de passe;
            saisissez vos identifiants; introduce tu contraseña; ingrese su contraseña;
            introduzca su contraseña; digite sua senha; inserisci la password;
            inserisci le tue credenziali; voer uw wachtwoord; voer je wachtwoord; podaj hasło;
            введите пароль; введите логин; şifrenizi girin; 请输入密码; 请输入用户名; 請輸入密碼;
            パスワードを入力; 비밀번호를 입력; bitte melden sie sich an; bitte loggen sie sich ein;
            veuillez vous connecter; inicia sesión para; inicie sesión para; faça login para;
            effettua il login; accedi per; log in om; zaloguj się, aby; войдите, чтобы; необходимо войти;
            请先登录; 请登录; 請先登入; ログインしてください; 로그인이 필요; يرجى تسجيل الدخول
            """
        ),
        "join": phrases(
            """
            don't have an account; do not have an account; no account yet; need an account;
            register for a free account; not a member; new here; create an account; create a new account;
            create your account; already have an account; noch kein konto; kein benutzerkonto;
            pas encore de compte; pas encore inscrit; ¿no tienes cuenta; ¿no tienes una cuenta;
            não tem uma conta; ainda não tem conta; non hai un account; nog geen account; nie masz konta;
            нет аккаунта; нет учетной записи; hesabınız yok mu; 没有账号; 还没有账号; 還沒有帳號;
            アカウントをお持ちでない; 계정이 없으신가요; ليس لديك حساب; chưa có tài khoản
            """
        ),
        "lost": phrases(
            """
            forgot your password; forgot password; forgot username; forgotten your password;
            need help signing; trouble signing in; trouble logging in; lost your password;
            reset your password; reset password; can't access your account; passwort vergessen;
            mot de passe oublié; olvidaste tu contraseña; olvidó su contraseña; esqueceu a senha;
            esqueceu sua senha; password dimenticata; wachtwoord vergeten; nie pamiętasz hasła;
            забыли пароль; şifremi unuttum; 忘记密码; 忘記密碼; パスワードをお忘れ; パスワードを忘れた;
            비밀번호 찾기; 비밀번호를 잊으; نسيت كلمة; quên mật khẩu; ลืมรหัสผ่าน; पासवर्ड भूल गए
            """
        ),
        "kept": phrases(
            """
            remember me; keep me signed in; keep me logged in; stay signed in; remember this device;
            angemeldet bleiben; se souvenir de moi; rester connecté; recordarme; mantener la sesión;
            lembrar de mim; manter conectado; ricordami; resta collegato; ingelogd blijven; zapamiętaj mnie;
            запомнить меня; beni hatırla; 记住我; 自动登录; 記住我; ログイン状態を保持; 로그인 상태 유지;
            تذكرني
            """
        ),
        "other": phrases(
            """
            sign in with; log in with; login with; continue with google; continue with apple;
            continue with facebook; continue with microsoft; continue with email; single sign-on;
            verification code; two-factor; authenticator app; one-time code; anmelden mit;
            se connecter avec; iniciar sesión con; entrar com; accedi con; войти через; 使用微信登录;
            でログイン; 계정으로 로그인
            """
        ),
    }
)

NOTICE_SIGNALS = Signals(
    {
        "cookies": phrases(
            """
            we use cookies; we also use cookies; our cookies; uses cookies; use of cookies; using cookies;
            set cookies; cookies we; cookies to ensure; cookies to improve; cookies to give you;
            cookies to personali; cookies to enhance; cookies to provide; cookies to analy; accept cookies;
            cookie policy; cookie settings; cookie preferences; cookie notice; cookie consent;
            necessary cookies; essential cookies; functional cookies; analytics cookies; marketing cookies;
            performance cookies; targeting cookies; advertising cookies; third-party cookies; these cookies;
            wir verwenden cookies; wir nutzen cookies; wir setzen cookies; verwendet cookies;
            verwendung von cookies; notwendige cookies; cookie-einstellungen; cookie-richtlinie;
            nous utilisons des cookies; utilise des cookies; utilisation de cookies;
            utilisation des cookies; paramètres des cookies; usamos cookies; utilizamos cookies;
            utiliza cookies; uso de cookies; política de cookies; configuración de cookies;
            utilizziamo i cookie; utilizza i cookie; utilizza cookie; uso dei cookie; wij gebruiken cookies;
            we gebruiken cookies; gebruikt cookies; używamy plików cookie; używa plików cookie;
            используем файлы cookie; использует файлы cookie; использует cookie; используем cookie; çerez;
            我们使用cookie; 我们使用 cookie; 本网站使用cookie; 本网站使用 cookie; 使用cookies; cookieを使用;
            クッキーを使用; 쿠키를 사용; ملفات تعريف الارتباط; sử dụng cookie; menggunakan cookie
            """
        ),
        "consent": phrases(
            """
            we value your privacy; we respect your privacy; we care about your privacy;
            your privacy is important; by continuing to; by clicking; by using this; you agree to;
            you consent to; you accept; withdraw your consent; manage your preferences;
            change your preferences; manage consent; our partners; legitimate interest; opt out; opt-out;
            your consent; stimmen sie; einwilligung; datenschutzerklärung; ihre privatsphäre;
            unsere partner; vous acceptez; votre consentement; nos partenaires;
            politique de confidentialité; votre vie privée; usted acepta; aceptas; su consentimiento;
            tu consentimiento; política de privacidad; su privacidad; você concorda; seu consentimento;
            accetti; acconsenti; informativa sulla privacy; la tua privacy; ga je akkoord; gaat u akkoord;
            toestemming; wyrażasz zgodę; zgodę na; соглашаетесь; даете согласие; 继续使用; 您同意; 隐私政策;
            同意したもの; プライバシーポリシー; 동의; توافق على; bạn đồng ý
            """
        ),
        "rights": phrases(
            """
            all rights reserved; alle rechte vorbehalten; tous droits réservés;
            todos los derechos reservados; todos os direitos reservados; tutti i diritti riservati;
            alle rechten voorbehouden; copyright ©; © 20; wszelkie prawa zastrzeżone; все права защищены;
            tüm hakları saklıdır; 版权所有; 保留所有权利; all rights; 版權所有; 無断転載を禁じます;
            모든 권리 보유; جميع الحقوق محفوظة; (c) 20; ©20
            """
        ),
        "newsletter": phrases(
            """
            subscribe to our newsletter; sign up for our newsletter; join our newsletter;
            join our mailing list; subscribe to get; get the latest news; straight to your inbox;
            in your inbox; follow us on; share this page; share this article; share on facebook;
            share on twitter; like us on facebook; newsletter abonnieren; folgen sie uns; abonnez-vous;
            inscrivez-vous à notre newsletter; suivez-nous; suscríbete; síguenos; inscreva-se; siga-nos;
            iscriviti alla newsletter; seguici; volg ons; zapisz się do newslettera; подпишитесь; 订阅;
            关注我们; メルマガ; 뉴스레터; اشترك في
            """
        ),
    }
)
