"""Whole lines that say nothing by themselves: menu entries, buttons, form labels, placeholders, keys.

In lower case, without punctuation around them.
"""

from ingest_assets.stages.judging.phrases import phrases

MENU_LABELS = frozenset(
    phrases(
        """
        home; homepage; start; main page; menu; main menu; navigation; search; site search; about;
        about us; contact; contact us; help; faq; faqs; support; blog; news; press; products; services;
        solutions; pricing; shop; store; cart; my cart; checkout; careers; jobs; events; gallery;
        downloads; download; documentation; docs; community; forum; login; log in; sign in; sign up;
        register; logout; log out; my account; account; privacy; privacy policy; terms; terms of use;
        terms of service; terms and conditions; legal; legal notice; imprint; disclaimer; cookies;
        cookie policy; cookie settings; accessibility; sitemap; site map; next; previous; prev; back;
        back to top; top; more; read more; show more; see all; view all; learn more; skip to content;
        skip to main content; toggle navigation; open menu; close; close menu; share; print; rss; english;
        language; facebook; twitter; instagram; linkedin; youtube; newsletter; archive; archives; tags;
        categories; recent posts; feedback; partners; team; our team; portfolio; resources; startseite;
        über uns; kontakt; impressum; datenschutz; suche; hilfe; anmelden; agb; produkte; leistungen;
        aktuelles; karriere; weiter; zurück; mehr; mehr erfahren; warenkorb; accueil; à propos;
        contactez-nous; recherche; aide; connexion; mentions légales; produits; plan du site; suivant;
        précédent; actualités; en savoir plus; panier; boutique; presse; inicio; acerca de;
        sobre nosotros; contacto; contáctenos; buscar; ayuda; productos; servicios; noticias; aviso legal;
        mapa del sitio; siguiente; anterior; iniciar sesión; início; sobre; quem somos; contato;
        pesquisar; ajuda; produtos; serviços; chi siamo; contatti; cerca; prodotti; servizi; notizie;
        mappa del sito; accedi; over ons; zoeken; producten; diensten; nieuws; volgende; vorige;
        strona główna; o nas; szukaj; главная; о нас; о компании; контакты; поиск; помощь; новости;
        каталог; услуги; войти; регистрация; карта сайта; ana sayfa; hakkımızda; iletişim; ara; 首页;
        关于我们; 联系我们; 搜索; 帮助; 产品; 服务; 新闻; 登录; 注册; 网站地图; 首頁; 關於我們; 聯絡我們;
        ホーム; 会社概要; お問い合わせ; 検索; ヘルプ; サイトマップ; ログイン; ニュース; 홈; 회사소개;
        문의하기; 검색; 도움말; 로그인; الرئيسية; من نحن; اتصل بنا; بحث; trang chủ; giới thiệu; liên hệ
        """
    )
)

BUTTONS = frozenset(
    phrases(
        """
        accept; accept all; accept all cookies; accept cookies; accept and close; accept & close; reject;
        reject all; reject all cookies; decline; decline all; deny; allow all; i agree; agree;
        agree and close; got it; ok; okay; save; save settings; save preferences; close; customize;
        customise; manage; manage cookies; manage preferences; manage choices; settings;
        confirm my choices; only necessary; necessary only; necessary; analytics; marketing; statistics;
        preferences; functional; more information; more options; subscribe; submit; privacy settings;
        alle akzeptieren; akzeptieren; ablehnen; alle ablehnen; einstellungen; notwendig; speichern;
        nur notwendige; mehr informationen; tout accepter; accepter; refuser; tout refuser; personnaliser;
        paramétrer; aceptar; aceptar todo; aceptar todas; rechazar; rechazar todo; configurar; aceitar;
        aceitar todos; rejeitar; accetta; accetta tutti; rifiuta; accepteren; weigeren; akceptuję;
        zgadzam się; odrzuć; принять; принять все; отклонить; kabul et; reddet; 接受; 全部接受; 拒绝;
        同意; 同意する; 拒否する; 동의; 거부; موافق; قبول; رفض; đồng ý
        """
    )
)

METADATA_KEYS = frozenset(
    phrases(
        """
        title; subtitle; author; authors; creator; editor; publisher; date; published; publication date;
        date published; date created; created; created on; created by; date modified; modified;
        last modified; modified by; last updated; updated; file name; filename; file; file size; size;
        file type; type; format; mime type; pages; page count; number of pages; language; version;
        revision; doi; isbn; issn; url; link; permalink; identifier; id; document id; document number;
        keywords; tags; category; categories; subject; license; rights; copyright; source; views;
        downloads; rating; status; checksum; md5; sha256; producer; uploaded; uploaded by; upload date;
        posted; posted by; posted on; resolution; dimensions; journal; volume; issue; edition; series;
        document type; classification; titel; autor; verfasser; herausgeber; verlag; datum; erstellt;
        erstellt am; geändert; geändert am; dateiname; dateigröße; dateityp; seiten; seitenzahl; sprache;
        schlagwörter; titre; auteur; éditeur; date de publication; date de création; taille;
        taille du fichier; langue; mots-clés; título; autores; editorial; fecha; fecha de publicación;
        tamaño; idioma; palabras clave; páginas; tamanho; titolo; autore; editore; lingua; pagine;
        auteurs; uitgever; bestandsgrootte; taal; tytuł; wydawca; rozmiar; język; название; автор;
        издатель; дата; дата публикации; размер; размер файла; язык; страниц; формат; 标题; 作者; 日期;
        发布日期; 文件大小; 格式; 页数; 语言; 关键词; 版本; 出版社; 来源; タイトル; 著者; 日付; 発行日;
        ファイルサイズ; 形式; ページ数; 言語; 제목; 저자; 날짜; 파일 크기; 형식; 언어; العنوان; المؤلف;
        التاريخ; الحجم; اللغة
        """
    )
)

PLACEHOLDERS = frozenset(
    phrases(
        """
        todo; tbd; tba; tbc; to do; to be done; to be defined; to be determined; xxx; xxxx; to be written;
        to be completed; to be added; to be announced; coming soon; under construction; placeholder;
        placeholder text; sample text; dummy text; your text here; insert text here; add text here;
        text here; enter text here; type here; click to add title; click to add text;
        click to add subtitle; click to edit master title style; click to edit master text styles;
        second level; third level; fourth level; fifth level; your title here; title here; heading here;
        your logo here; company name; your company name; your name; your name here; name of client;
        add your text here; write your text here; insert image here; insert title here; add a heading;
        titel durch klicken hinzufügen; text durch klicken hinzufügen; hier text einfügen; platzhalter;
        cliquez pour ajouter un titre; cliquez pour ajouter du texte; texte ici; à compléter; à définir;
        haga clic para agregar título; haga clic para agregar texto; texto de ejemplo; por definir;
        clique para adicionar título; a definir; da definire; da completare; заполнить; образец текста;
        待定; 待补充; 单击此处添加标题; 单击此处添加文本; 在此输入文本; 未定; タイトルを入力;
        テキストを入力
        """
    )
)

LOGIN_LABELS = {
    "user": frozenset(
        phrases(
            """
            username; user name; user id; userid; login; email; e-mail; email address; your email;
            e-mail address; username or email; email or username; username or email address; account;
            email or phone; enter your email; enter your username; benutzername; e-mail-adresse;
            benutzerkennung; nom d'utilisateur; identifiant; adresse e-mail; usuario; correo electrónico;
            nombre de usuario; usuário; nome de usuário; nome utente; gebruikersnaam; nazwa użytkownika;
            имя пользователя; логин; электронная почта; kullanıcı adı; e-posta; 用户名; 账号; 帳號; 邮箱;
            手机号; ユーザー名; ユーザーid; メールアドレス; 아이디; 이메일; اسم المستخدم;
            البريد الإلكتروني; tên đăng nhập; ชื่อผู้ใช้; उपयोगकर्ता नाम
            """
        )
    ),
    "password": frozenset(
        phrases(
            """
            password; your password; enter your password; enter password; passcode; pin; passwort;
            kennwort; mot de passe; contraseña; clave; senha; palavra-passe; wachtwoord; hasło; пароль;
            şifre; parola; heslo; lösenord; 密码; 密碼; パスワード; 비밀번호; كلمة المرور; كلمة السر;
            mật khẩu; รหัสผ่าน; पासवर्ड; kata sandi; show password; hide password
            """
        )
    ),
    "submit": frozenset(
        phrases(
            """
            submit; sign in; sign on; log in; login; log on; anmeldung; sign up; register; continue; next;
            anmelden; einloggen; registrieren; se connecter; connexion; s'inscrire; iniciar sesión;
            registrarse; entrar; acceder; cadastre-se; accedi; registrati; inloggen; zaloguj; zaloguj się;
            войти; вход; регистрация; giriş yap; kayıt ol; přihlásit; logga in; 登录; 登入; 注册;
            立即注册; ログイン; 新規登録; 로그인; 회원가입; تسجيل الدخول; دخول; đăng nhập; đăng ký; เข้าสู่ระบบ;
            member login; customer login; user login; account login; sign in to continue; welcome back
            """
        )
    ),
}

# The words of lorem ipsum and of those who generate more of it.
_FILLER = """
consetetur sadipscing elitr nonumy eirmod invidunt aliquyam voluptua vero eos accusam duo dolores rebum stet
clita kasd gubergren no sea takimata sanctus
a ac accumsan ad adipiscing adipisicing aenean aliqua aliquam aliquip amet anim ante aptent arcu at auctor
augue aute bibendum blandit cillum class commodo condimentum congue consectetur consequat conubia
convallis cras culpa cupidatat curabitur cursus dapibus deserunt diam dictum dictumst dignissim dis do
dolor dolore donec dui duis ea efficitur egestas eget eiusmod eleifend elementum elit enim erat eros esse
est et etiam eu euismod ex excepteur exercitation facilisi facilisis fames faucibus felis fermentum
feugiat finibus fringilla fugiat fusce gravida habitant habitasse hac hendrerit himenaeos iaculis id
imperdiet in inceptos incididunt integer interdum ipsum irure justo labore laboris laborum lacinia lacus
laoreet lectus leo libero ligula litora lobortis lorem luctus maecenas magna magnis malesuada massa mattis
mauris metus mi minim molestie mollis mollit montes morbi nam nascetur natoque nec neque netus nibh nisi
nisl non nostra nostrud nulla nullam nunc occaecat odio officia orci ornare pariatur parturient
pellentesque penatibus per pharetra phasellus placerat platea porta porttitor posuere potenti praesent
pretium primis proident proin pulvinar purus quam qui quis quisque reprehenderit rhoncus ridiculus risus
rutrum sagittis sapien scelerisque sed sem semper senectus sint sit sociosqu sodales sollicitudin sunt
suspendisse taciti tellus tempor tempus tincidunt torquent tortor tristique turpis ullamco ullamcorper
ultrices ultricies urna ut varius vehicula vel velit venenatis veniam vestibulum vitae vivamus viverra
voluptate volutpat vulputate
"""
FILLER_WORDS = frozenset(_FILLER.split())
